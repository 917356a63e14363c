// expect: race
// runs: 10
// race-at: first second
// A try that fails orders nothing.
#include "tests/programs/order.h"

#include <sanitizer/tsan_interface.h>

static char mutex;
static volatile int data;

static NOINLINE void *first(void *unused)
{
    __tsan_mutex_pre_lock(&mutex, 0);
    __tsan_mutex_post_lock(&mutex, 0, 0);
    data = 1;
    __tsan_mutex_pre_unlock(&mutex, 0);
    __tsan_mutex_post_unlock(&mutex, 0);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    __tsan_mutex_pre_lock(&mutex, __tsan_mutex_try_lock);
    __tsan_mutex_post_lock(&mutex, __tsan_mutex_try_lock | __tsan_mutex_try_lock_failed, 0);
    data = 2;
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
