// expect: none
// runs: 10
// A fiber that two threads run in turns, each after the other has left it.
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

static ucontext_t contexts[2];
static void *threads[2];

static NOINLINE void body(void)
{
    for (;;) {
        data++;
        int now = present_stage() % 2;
        __tsan_switch_to_fiber(threads[now], 0);
        MUST(swapcontext(&fiber_context, &contexts[now]) == 0);
    }
}

static void *run(int me)
{
    threads[me] = __tsan_get_current_fiber();
    for (int i = 0; i < 50; i++) {
        await(2 * i + me);
        go(fiber, &contexts[me], &fiber_context, 0);
        reach(2 * i + me + 1);
    }
    return NULL;
}

static void *even(void *unused)
{
    run(0);
    return unused;
}

static void *odd(void *unused)
{
    run(1);
    return unused;
}

int main(void)
{
    begin(body);
    run_both(even, odd);
    MUST(data == 100);
    __tsan_destroy_fiber(fiber);
    return 0;
}
