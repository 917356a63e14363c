/* What the C++ ABI and exit handlers order.
 *
 * 1. A static variable's initialisation comes before its uses: __cxa_guard_release before every __cxa_guard_acquire that returns 0,
 *    and before the inlined acquire-load of the guard, which meets the same object (its address).
 * 2. Registering an exit handler comes before its run, whichever thread did it: the list has a lock in libc.
 * 3. atexit() is not in libc.so: programs have it from a static archive, except those linked with a runtime that exports it.
 *    Then it is not known which module asks: the handler runs at exit, not when a library is unloaded.
 */
#include "guest/libc.h"
#include "guest/memory.h"

/* What a scheduler of the program's own may have: it is told that the thread may wait for another's initialisation. */
extern void blocks_begin(void) __asm__("_ZN6__tsan32OnPotentiallyBlockingRegionBeginEv") __attribute__((weak, visibility("default")));
extern void blocks_end(void) __asm__("_ZN6__tsan30OnPotentiallyBlockingRegionEndEv") __attribute__((weak, visibility("default")));

RF_INTERCEPT(int, __cxa_guard_acquire, (void *guard))
{
    struct rf_scope scope = RF_ENTER(__cxa_guard_acquire);
    if (&blocks_begin)
        blocks_begin();
    int result = RF_REAL(__cxa_guard_acquire)(guard);
    if (&blocks_end)
        blocks_end();
    if (scope.self)
        rf_acquire((uintptr_t)guard, RF_O_ONCE);
    rf_leave(&scope);
    return result;
}

#define GUARD_ENDS(name)                                  \
    RF_INTERCEPT(void, name, (void *guard))               \
    {                                                     \
        struct rf_scope scope = RF_ENTER(name);           \
        if (scope.self)                                   \
            rf_release((uintptr_t)guard, RF_O_ONCE);      \
        RF_REAL(name)(guard);                             \
        rf_leave(&scope);                                 \
    }
GUARD_ENDS(__cxa_guard_release)
GUARD_ENDS(__cxa_guard_abort)

static char handlers; /* the address of invariant 2 */

struct handler {
    union {
        void (*plain)(void);
        void (*with)(void *);
        void (*status)(int, void *);
    } f;
    void *argument;
};

static struct handler *registered(void *f, void *argument)
{
    if (rf_started)
        rf_release((uintptr_t)&handlers, RF_O_USER);
    struct handler *handler = rf_take(sizeof *handler);
    handler->f.with = (void (*)(void *))f;
    handler->argument = argument;
    return handler;
}

static struct handler runs(void *record)
{
    struct handler handler = *(struct handler *)record;
    rf_give(record, sizeof handler);
    if (rf_started)
        rf_acquire((uintptr_t)&handlers, RF_O_USER);
    return handler;
}

static void run_with(void *record)
{
    struct handler handler = runs(record);
    handler.f.with(handler.argument);
}

static void run_plain(void *record)
{
    struct handler handler = runs(record);
    handler.f.plain();
}

static void run_status(int status, void *record)
{
    struct handler handler = runs(record);
    handler.f.status(status, handler.argument);
}

RF_INTERCEPT(int, __cxa_atexit, (void (*f)(void *), void *argument, void *module))
{
    return RF_REAL(__cxa_atexit)(run_with, registered((void *)f, argument), module);
}

RF_INTERCEPT(int, atexit, (void (*f)(void)))
{
    return RF_REAL(__cxa_atexit)(run_plain, registered((void *)f, NULL), NULL);
}

RF_INTERCEPT(int, on_exit, (void (*f)(int, void *), void *argument))
{
    return RF_REAL(on_exit)(run_status, registered((void *)f, argument));
}
