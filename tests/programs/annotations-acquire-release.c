// expect: none
// runs: 10
// __tsan_release comes before a later __tsan_acquire.
#include "tests/programs/order.h"

#include <sanitizer/tsan_interface.h>

static int data, mark;

static NOINLINE void *first(void *unused)
{
    data = 1;
    __tsan_release(&mark);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    __tsan_acquire(&mark);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
