// expect: race
// race-at: body second
// Contexts of one thread: each has its own stack; the frames of a report are those of the context.
#include "tests/programs/order.h"

#include <ucontext.h>

static ucontext_t home, inside;
static char stack[1 << 16];
int data;
static int count;

static NOINLINE void body(void)
{
    for (;;) {
        count++;
        if (count == 1000)
            data = 1;
        swapcontext(&inside, &home);
    }
}

static NOINLINE void *first(void *unused)
{
    MUST(getcontext(&inside) == 0);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    makecontext(&inside, body, 0);
    for (int i = 0; i < 1000; i++)
        MUST(swapcontext(&home, &inside) == 0);
    MUST(count == 1000);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    data = 2;
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
