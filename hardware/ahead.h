/* Looking ahead: brings what the coming events need into the host's own caches.
 *
 * What a simulation knows of one line lies in a dozen places all over its memory, and each of them leads to the next. Taken one after
 * the other, the simulator would do nothing but wait. But the trace is known: so the places of an event are fetched in four steps,
 * each some events before the places that it leads to are needed.
 *
 * 1. Nothing here changes what is simulated. A wrong guess costs time only.
 * 2. Events on the line of the one before are passed over. Of another line everything is asked for, also what is there already: where
 *    the host guesses a branch wrong it loses more.
 */
#ifndef RF_HARDWARE_AHEAD_H
#define RF_HARDWARE_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "hardware/usual.h"

#define RF_AHEAD 32u /* lines that are kept in mind; a power of two */

struct rf_simulation;
struct rf_batch;

struct rf_ahead {
    uint64_t half;              /* where the latest access was: a half of a data line, which has a metadata line */
    uint32_t next;              /* where the latest of those that are known is */
    uint32_t numbers[RF_AHEAD]; /* the metadata lines of the coming events */
    uint8_t cores[RF_AHEAD];    /* where they will be */
    uint8_t others[RF_AHEAD];   /* the other core of which there were events last */
};

/* The steps for the events after the one at `at`. */
RF_ROOM void rf_ahead_look(struct rf_simulation *simulation, const struct rf_batch *batch, size_t at);

#endif
