/* The facts of `redflag static` (static/facts.h), for redflag caper: which sites need not be looked at, and which memory an allocation
 * makes.
 *
 * 1. A site that the facts do not know may access any memory, and publish any pointer.
 * 2. An allocation whose line has no fact, in a file with the name of one that there are facts of, may make memory of any kind: then no
 *    site sleeps any more. One in another file is a library's, whose memory has escaped for the facts from the start.
 */
#ifndef RF_CLI_CAPER_FACTS_H
#define RF_CLI_CAPER_FACTS_H

#include "sites/list.h"

struct rf_facts;

/* NULL: the file is not there or cannot be read, with errno, or says something else, with one line for the user and errno 0. */
struct rf_facts *rf_facts_read(const char *path, const char *who);

/* What is allocated at a place FILE:LINE, on stacks (NULL), or anywhere (""), escapes; `unseen`: while sites may have been asleep. */
void rf_facts_escapes(struct rf_facts *facts, const char *place, bool unseen);

enum rf_fact { RF_FACT_NOT_KNOWN, RF_FACT_MAY, RF_FACT_CANNOT };

/* May accesses at a place FILE:LINE[:COLUMN] have been to memory that has escaped? `unseen`: of those that may have come while sites were
 * asleep. `what`: 'r', 'w', or 'b' for both. */
enum rf_fact rf_facts_access(const struct rf_facts *facts, const char *place, char what, bool unseen);
/* May a function that is called there access memory? */
bool rf_facts_calls(const struct rf_facts *facts, const char *place);
/* May a store there publish a pointer? */
enum rf_fact rf_facts_publish(const struct rf_facts *facts, const char *place);

#endif
