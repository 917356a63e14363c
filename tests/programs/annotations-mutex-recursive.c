// expect: none
// runs: 10
// A monitor: a wait gives all levels back at once, and takes them again.
#include "tests/programs/order.h"

#include <sanitizer/tsan_interface.h>

static char monitor;
static int data;

static void enter(unsigned flags, int levels)
{
    __tsan_mutex_pre_lock(&monitor, __tsan_mutex_write_reentrant | flags);
    __tsan_mutex_post_lock(&monitor, __tsan_mutex_write_reentrant | flags, levels);
}

static int leave(unsigned flags)
{
    int levels = __tsan_mutex_pre_unlock(&monitor, flags);
    __tsan_mutex_post_unlock(&monitor, flags);
    return levels;
}

static void *waiter(void *unused)
{
    enter(0, 0);
    enter(0, 0);
    data = 1;
    int levels = leave(__tsan_mutex_recursive_unlock);
    MUST(levels == 2);
    reach(1);
    await(2);
    enter(__tsan_mutex_recursive_lock, levels);
    MUST(data == 2);
    leave(0);
    data = 3;
    leave(0);
    reach(3);
    return unused;
}

static void *notifier(void *unused)
{
    await(1);
    enter(0, 0);
    MUST(data == 1);
    data = 2;
    leave(0);
    reach(2);
    await(3);
    enter(0, 0);
    MUST(data == 3);
    leave(0);
    return unused;
}

int main(void)
{
    __tsan_mutex_create(&monitor, __tsan_mutex_write_reentrant);
    run_both(waiter, notifier);
    __tsan_mutex_destroy(&monitor, 0);
    return 0;
}
