// expect: race
// runs: 3
// race-at: owner other
// options: sync=fib
// text: done
// The owner of a word computes without a hook until the other has accessed it: whoever asks must not wait for its next hook.
#include "tests/programs/order.h"

long word;

NOINLINE void owner(void)
{
    word = 1;
}

NOINLINE void other(void)
{
    word = 2;
}

static void *one(void *unused)
{
    owner();
    reach(1);
    await(2); /* nothing that the runtime could hear of */
    return unused;
}

static void *two(void *unused)
{
    await(1);
    other();
    reach(2);
    return unused;
}

int main(void)
{
    run_both(one, two);
    puts("done");
    return 0;
}
