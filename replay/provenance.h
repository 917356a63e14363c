/* Finds the earlier access of each race again in the trace: detectors keep only the low half of its number. */
#ifndef RF_REPLAY_PROVENANCE_H
#define RF_REPLAY_PROVENANCE_H

#include "report/report.h"
#include "trace/trace.h"

/* Fills in sites and operations of the first accesses in all results. false: the trace cannot be read a second time. */
bool rf_provenance(struct rf_reader *reader, struct rf_report *report);

#endif
