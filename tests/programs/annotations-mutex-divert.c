// expect: race
// runs: 10
// race-at: first second
// reports: 1
// A divert leaves the lock's own code: what is done there counts.
#include "tests/programs/order.h"

#include <sanitizer/tsan_interface.h>

static char mutex;
static volatile int quiet, loud;

static NOINLINE void *first(void *unused)
{
    __tsan_mutex_pre_signal(&mutex, 0);
    quiet = 1;
    __tsan_mutex_pre_divert(&mutex, 0);
    loud = 1;
    __tsan_mutex_post_divert(&mutex, 0);
    quiet = 2;
    __tsan_mutex_post_signal(&mutex, 0);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    quiet = 3;
    loud = 2;
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
