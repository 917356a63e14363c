/* `redflag compare --lard`: one trace in every view of report/lard.h. */
#ifndef RF_REPLAY_LARD_H
#define RF_REPLAY_LARD_H

#include "replay/analysis.h"
#include "report/lard.h"

/* plan has one detector; its view is not used, and every race counts. `language` is NULL, or the path of a trace of the same execution as
 * the language sees it. The trace is read once for each view, so it is a file. On RF_TRACE_ERROR and RF_TRACE_TRUNCATED *error is one
 * line for the user, to be freed; the table is filled as far as the trace is good. */
enum rf_trace_status rf_lard(const char *path, const char *language, const struct rf_plan *plan, struct rf_lard *lard,
                             char **error);

#endif
