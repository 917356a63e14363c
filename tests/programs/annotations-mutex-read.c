// expect: race
// runs: 10
// race-at: first second
// Two read locks are not ordered.
#include "tests/programs/order.h"

#include <sanitizer/tsan_interface.h>

static char mutex;
static volatile int data;

static void enter(void)
{
    __tsan_mutex_pre_lock(&mutex, __tsan_mutex_read_lock);
    __tsan_mutex_post_lock(&mutex, __tsan_mutex_read_lock, 0);
}

static void leave(void)
{
    __tsan_mutex_pre_unlock(&mutex, __tsan_mutex_read_lock);
    __tsan_mutex_post_unlock(&mutex, __tsan_mutex_read_lock);
}

static NOINLINE void *first(void *unused)
{
    enter();
    data = 1;
    leave();
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    enter();
    data = 2;
    leave();
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
