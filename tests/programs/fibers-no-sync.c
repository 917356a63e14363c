// expect: race
// runs: 10
// race-at: body main
// A switch that is said to order nothing.
#include "tests/programs/order.h"

#include <sanitizer/tsan_interface.h>
#include <ucontext.h>

static ucontext_t main_context, fiber_context;
static void *main_fiber, *fiber;
static char stack[1 << 16] __attribute__((aligned(16)));
static volatile int data;

static void go(void *to, ucontext_t *from, ucontext_t *target, unsigned flags)
{
    __tsan_switch_to_fiber(to, flags);
    MUST(swapcontext(from, target) == 0);
}

static void begin(void (*f)(void))
{
    main_fiber = __tsan_get_current_fiber();
    fiber = __tsan_create_fiber(0);
    __tsan_set_fiber_name(fiber, "the fiber");
    MUST(getcontext(&fiber_context) == 0);
    fiber_context.uc_stack.ss_sp = stack;
    fiber_context.uc_stack.ss_size = sizeof stack;
    makecontext(&fiber_context, f, 0);
}

static NOINLINE void body(void)
{
    data = 2;
    go(main_fiber, &fiber_context, &main_context, __tsan_switch_to_fiber_no_sync);
}

int main(void)
{
    begin(body);
    data = 1;
    go(fiber, &main_context, &fiber_context, __tsan_switch_to_fiber_no_sync);
    data = 3;
    __tsan_destroy_fiber(fiber);
    return 0;
}
