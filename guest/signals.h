/* Signals: what the rest of the guest needs to know. */
#ifndef RF_GUEST_SIGNALS_H
#define RF_GUEST_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "guest/hot.h"

/* A handler of the program that runs now, on the stack of who called it. */
struct rf_handling {
    struct rf_handling *outer;
    struct rf_frame *top;            /* of the frames that were interrupted: the handler's own are above */
    uintptr_t stack, stack_end;      /* the alternate stack, if it runs there */
    int signal;
    bool synchronous;                /* a fault, or raise(): nothing was interrupted that it could disturb */
    uint32_t ignore_reads, ignore_writes, ignore_sync;
    const uint64_t *mask; /* of what was interrupted */
};
extern RF_TLS struct rf_handling *rf_handling; /* the innermost; NULL: none */

/* Called by rf_busy_end() if self->pending_signals: runs the handler that had to wait. */
void rf_signals_deliver(void);

/* Around the making of a thread, which has no record before it runs: all signals but faults. Returns the old mask. */
uint64_t rf_signals_block(void);
void rf_signals_restore(uint64_t mask);

/* The guest's own faults: `ours` is asked first, and says whether it has mended it. Before there is a second thread. */
void rf_signals_on_fault(bool (*ours)(siginfo_t *, void *));

/* An interceptor of a function that must not be called in a handler says so: a report, if one runs (report_signal_unsafe). */
void rf_signals_unsafe(const char *function, uintptr_t pc);
static inline void rf_signal_unsafe(const char *function, uintptr_t pc)
{
    if (__builtin_expect(rf_handling != NULL, 0))
        rf_signals_unsafe(function, pc);
}

/* longjmp: the handlers that are left by it end. */
void rf_signals_left(uintptr_t sp);

/* Of what runs if all handlers inside of this one (NULL: all) are left; NULL: nothing but this one runs now. */
const uint64_t *rf_signals_mask_outside(const struct rf_handling *kept);

#endif
