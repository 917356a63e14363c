// expect: race
// runs: 10
// race-at: first second
// An acquire that came before the release receives nothing.
#include "tests/programs/order.h"

#include <sanitizer/tsan_interface.h>

static int data, mark;

static NOINLINE void *first(void *unused)
{
    await(1);
    data = 1;
    __tsan_release(&mark);
    reach(2);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    __tsan_acquire(&mark);
    reach(1);
    await(2);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
