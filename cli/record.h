/* Recording a program: the parts of `redflag record`. */
#ifndef RF_CLI_RECORD_H
#define RF_CLI_RECORD_H

#include "core/recording.h"
#include "trace/trace.h"

/* From addresses of code to sites of the trace: cli/record_sites.c. */
struct rf_sites;
struct rf_sites *rf_sites_new(struct rf_recording *recording, struct rf_writer *writer);
void rf_sites_free(struct rf_sites *sites);
uint32_t rf_site(struct rf_sites *sites, uint64_t pc); /* 0 for 0 */

/* From the blocks of a program's threads to one trace: cli/record_merge.c. */
struct rf_merge;
struct rf_merge *rf_merge_new(struct rf_recording *recording, struct rf_writer *writer);
void rf_merge_free(struct rf_merge *merge);
/* Takes what there is. false: there was nothing. `all`: the program has ended, so tickets that are not there will never be. */
bool rf_merge_step(struct rf_merge *merge, bool all);
uint64_t rf_merge_events(const struct rf_merge *merge);
uint32_t rf_merge_threads(const struct rf_merge *merge);

#endif
