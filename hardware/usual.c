/* The simulator, compiled for machines of the usual form. See hardware/usual.h.
 *
 * One file, so that the compiler sees all of it at once: an access goes through most of these.
 */
#define RF_USUAL 1

/* NOLINTBEGIN(bugprone-suspicious-include): compiled a second time, with other constants */
#include "hardware/ahead.c"
#include "hardware/check.c"
#include "hardware/lardish.c"
#include "hardware/lines.c"
#include "hardware/machine.c"
#include "hardware/radish.c"
#include "hardware/run.c"
#include "hardware/software.c"
/* NOLINTEND(bugprone-suspicious-include) */

bool rf_is_usual(const struct rf_config *config)
{
    return config->line_bytes == RF_USUAL_LINE && config->page_bytes == RF_USUAL_PAGE && config->l1_ways == RF_USUAL_WAYS &&
           config->l2_ways == RF_USUAL_WAYS && config->llc_ways == RF_USUAL_LLC_WAYS && config->cores <= RF_USUAL_CORES &&
           config->encoding == RF_ENCODING_FULL;
}

void rf_usual_begin(struct rf_simulation *simulation)
{
    rf_events_begin(simulation);
}

void rf_usual_run(struct rf_simulation *simulation, const struct rf_batch *batch)
{
    rf_events_run(simulation, batch);
}
