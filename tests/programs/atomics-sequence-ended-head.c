// expect: race
// runs: 10
// race-at: update receive
// stock: a store leaves what was released before
// The head's own relaxed store goes on with its own release sequence, and ends that of a read-modify-write in between.
#include "tests/programs/order.h"
#include <stdatomic.h>

static int data;
static atomic_int flag;

static void *head(void *unused)
{
    atomic_store_explicit(&flag, 1, memory_order_release);
    reach(1);
    await(2);
    atomic_store_explicit(&flag, 3, memory_order_relaxed);
    reach(3);
    return unused;
}

static NOINLINE void *update(void *unused)
{
    await(1);
    data = 1;
    atomic_fetch_add_explicit(&flag, 1, memory_order_release);
    reach(2);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(3);
    MUST(atomic_load_explicit(&flag, memory_order_acquire) == 3);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    pthread_t other;
    MUST(pthread_create(&other, NULL, head, NULL) == 0);
    run_both(update, receive);
    MUST(pthread_join(other, NULL) == 0);
    return 0;
}
