/* What a result is made of: JSON objects whose member "redflag" says which kind.
 *
 *   build  id, path
 *   site   name, build, function, file, line, column
 *   pair   first, second, origin, stage ("static" or "dynamic"; a pair never goes back), priority, race: the fingerprint that confirms it
 *   run    id, mode, pair [first, second], host, build, started, seconds, waited, rate, status,
 *          reports: those of `redflag run --format jsonl`, or sightings: [{fingerprint, times}]
 *   race   fingerprint, kind, summary, pair, first_seen, last_seen, report
 *
 * Members that are not known may be left away. */
#ifndef RF_FLEET_RESULTS_H
#define RF_FLEET_RESULTS_H

#include <jansson.h>
#include <stdio.h>

#include "fleet/sql.h"

enum rf_sql_answer rf_result_apply(struct rf_sql *sql, const json_t *result);
enum rf_sql_answer rf_results_export(struct rf_sql *sql, FILE *out);

/* The run that a file of reports stands for. The id comes from its content, so that the same file is the same run. */
json_t *rf_result_of_reports(const char *text, size_t length, char error[160]);

#endif
