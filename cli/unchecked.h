/* redflag run --unchecked=FILE: sites and functions that cannot race, by name, become what the runtime reads (guest/unchecked.h). */
#ifndef RF_CLI_UNCHECKED_H
#define RF_CLI_UNCHECKED_H

#include "cli/run_options.h"

/* Adds the option to the text. False, with one line, if the file cannot be read. A name that means nothing in this program is counted, and
 * the count is said: lists are made for more than one program. */
bool rf_unchecked_sites(struct rf_run_text *text, const char *who, const char *list, const char *program);

#endif
