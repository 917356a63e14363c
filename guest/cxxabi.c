/* What the C++ ABI and exit handlers order.
 *
 * 1. A static variable's initialisation comes before its uses: __cxa_guard_release before every __cxa_guard_acquire that returns 0,
 *    and before the inlined acquire-load of the guard, which meets the same object (its address).
 * 2. Registering an exit handler comes before its run, whichever thread did it: the list has a lock in libc.
 * 3. atexit() is not in libc.so: programs have it from a static archive, except those linked with a runtime that exports it.
 *    Then it is not known which module asks: the handler runs at exit, not when a library is unloaded.
 */
#include "guest/access.h"
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
    uint32_t note; /* where it was registered; 0: not known */
};

/* Reports show where a handler was registered below it, as if that had called it, and one of these names in between. */
#define INSTALLED 32u
static void rf_icpt_at_exit_callback_installed_at(void) __attribute__((used));
static void rf_icpt_at_exit_callback_installed_at(void)
{
    __asm__ volatile("" ::: "memory");
}

static void rf_icpt_cxa_at_exit_callback_installed_at(void) __attribute__((used));
static void rf_icpt_cxa_at_exit_callback_installed_at(void)
{
    __asm__ volatile("nop; nop" ::: "memory");
}

static void rf_icpt_on_exit_callback_installed_at(void) __attribute__((used));
static void rf_icpt_on_exit_callback_installed_at(void)
{
    __asm__ volatile("nop" ::: "memory"); /* not the same function as the others */
}

static struct handler *registered(const struct rf_scope *scope, void *f, void *argument)
{
    struct handler *handler = rf_take(sizeof *handler);
    handler->f.with = (void (*)(void *))f;
    handler->argument = argument;
    if (scope->self) {
        rf_busy_begin(scope->self);
        handler->note = rf_note_here(scope->pc, 0, 0);
        rf_busy_end(scope->self);
    }
    if (rf_started)
        rf_release((uintptr_t)&handlers, RF_O_USER);
    return handler;
}

/* Returns how many frames it has pushed. */
static unsigned push_place(uint32_t note, void (*between)(void))
{
    uintptr_t pcs[INSTALLED];
    struct rf_self *self = rf_started ? rf_self() : NULL;
    if (!self || self->inside || !note || self->frames_end - rf_hot.top < 2 * (ptrdiff_t)INSTALLED)
        return 0;
    unsigned count = rf_note_stack(note, pcs, INSTALLED), pushed = 0;
    for (unsigned i = count; i-- > 0; pushed++) /* the innermost is the interceptor: the name takes its place */
        *rf_hot.top++ = (struct rf_frame){ .pc = i ? pcs[i] : (uintptr_t)between,
                                           .sp = (uint32_t)(uintptr_t)__builtin_frame_address(0) };
    return pushed;
}

static struct handler runs(void *record, void (*between)(void), unsigned *pushed)
{
    struct handler handler = *(struct handler *)record;
    rf_give(record, sizeof handler);
    if (rf_started)
        rf_acquire((uintptr_t)&handlers, RF_O_USER);
    *pushed = push_place(handler.note, between);
    return handler;
}

static void run_with(void *record)
{
    unsigned pushed;
    struct handler handler = runs(record, rf_icpt_cxa_at_exit_callback_installed_at, &pushed);
    handler.f.with(handler.argument);
    rf_hot.top -= pushed;
}

static void run_plain(void *record)
{
    unsigned pushed;
    struct handler handler = runs(record, rf_icpt_at_exit_callback_installed_at, &pushed);
    handler.f.plain();
    rf_hot.top -= pushed;
}

static void run_status(int status, void *record)
{
    unsigned pushed;
    struct handler handler = runs(record, rf_icpt_on_exit_callback_installed_at, &pushed);
    handler.f.status(status, handler.argument);
    rf_hot.top -= pushed;
}

RF_INTERCEPT(int, __cxa_atexit, (void (*f)(void *), void *argument, void *module))
{
    struct rf_scope scope = RF_ENTER(__cxa_atexit);
    struct handler *handler = registered(&scope, (void *)f, argument);
    rf_leave(&scope);
    return RF_REAL(__cxa_atexit)(run_with, handler, module);
}

RF_INTERCEPT(int, atexit, (void (*f)(void)))
{
    struct rf_scope scope = RF_ENTER(atexit);
    struct handler *handler = registered(&scope, (void *)f, NULL);
    rf_leave(&scope);
    return RF_REAL(__cxa_atexit)(run_plain, handler, NULL);
}

RF_INTERCEPT(int, on_exit, (void (*f)(int, void *), void *argument))
{
    struct rf_scope scope = RF_ENTER(on_exit);
    struct handler *handler = registered(&scope, (void *)f, argument);
    rf_leave(&scope);
    return RF_REAL(on_exit)(run_status, handler);
}
