// expect: none
// runs: 10
// A switch orders: what one fiber did before comes before what the other does after.
#include "tests/programs/order.h"

#include <sanitizer/tsan_interface.h>
#include <ucontext.h>

static ucontext_t main_context, fiber_context;
static void *main_fiber, *fiber;
static char stack[1 << 16] __attribute__((aligned(16)));
static int data;

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
    for (int i = 0;; i += 2) {
        MUST(__tsan_get_current_fiber() == fiber);
        MUST(data == i + 1);
        data = i + 2;
        go(main_fiber, &fiber_context, &main_context, 0);
    }
}

int main(void)
{
    begin(body);
    for (int i = 0; i < 200; i += 2) {
        MUST(data == i);
        data = i + 1;
        go(fiber, &main_context, &fiber_context, 0);
        MUST(__tsan_get_current_fiber() == main_fiber);
    }
    __tsan_destroy_fiber(fiber);
    return 0;
}
