/* Fibers: flows of control that one kernel thread runs in turns (sanitizer/tsan_interface.h).
 *
 * 1. A fiber is a thread of its own for happens-before, made like any other: what its creator did so far comes before it.
 * 2. A switch orders the two: what the one did before it comes before what the other does after it, through an object that has the
 *    address of the target's record. With NO_SYNC it does not, and then the program must order them itself.
 * 3. Who switches must not be inside anything: the guest's frames and counters belong to the record and stay with it.
 * 4. A fiber runs on one kernel thread at a time; to let two run it at once is an error of the program, as it is for its stack.
 */
#include "guest/fibers.h"

#include "guest/access.h"
#include "guest/atomics.h"
#include "guest/intercept.h"
#include "guest/threads.h"

#define PC ((uintptr_t)__builtin_return_address(0))
#define NO_SYNC 1u

bool rf_fibers_used;

RF_EXPORT void *__tsan_get_current_fiber(void);
RF_EXPORT void *__tsan_create_fiber(unsigned flags);
RF_EXPORT void __tsan_destroy_fiber(void *fiber);
RF_EXPORT void __tsan_switch_to_fiber(void *fiber, unsigned flags);
RF_EXPORT void __tsan_set_fiber_name(void *fiber, const char *name);

void *__tsan_get_current_fiber(void)
{
    return rf_started ? rf_self() : NULL;
}

void *__tsan_create_fiber(unsigned flags)
{
    (void)flags; /* none is defined */
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return NULL;
    struct rf_self *fiber = rf_thread_created(self, rf_note_here(PC, 0, 0), 0);
    fiber->is_fiber = true;
    rf_fibers_used = true;
    return fiber;
}

/* Nothing is ordered after a fiber that is destroyed: whoever needs that has switched away from it. */
void __tsan_destroy_fiber(void *fiber)
{
    struct rf_self *self = rf_atomic_self(), *old = fiber;
    if (!self || !old || old == self)
        return;
    rf_objects_forget((uintptr_t)old, 1);
    rf_thread_end(old);
}

void __tsan_switch_to_fiber(void *fiber, unsigned flags)
{
    struct rf_self *self = rf_atomic_self(), *to = fiber;
    if (!self || !to || to == self)
        return;
    if (!(flags & NO_SYNC))
        rf_release((uintptr_t)to, RF_O_USER);
    rf_thread_switch(to);
    if (!(flags & NO_SYNC))
        rf_acquire((uintptr_t)to, RF_O_USER);
}

void __tsan_set_fiber_name(void *fiber, const char *name)
{
    if (rf_started && fiber && name)
        rf_thread_name(fiber, name);
}
