// expect: none
// runs: 10
// C11: a relaxed store goes on with the sequences that its own thread heads, also those of its updates after others had joined theirs.
#include "tests/programs/order.h"
#include <stdatomic.h>

enum { TIMES = 10 };

static int data;
static atomic_llong flag;

static NOINLINE void *send(void *unused)
{
    atomic_store_explicit(&flag, 1, memory_order_release);
    reach(1);
    await(2);
    for (int i = 1; i <= TIMES; i++) {
        data = i;
        atomic_fetch_add(&flag, 1);
    }
    atomic_store_explicit(&flag, -1, memory_order_relaxed);
    reach(3);
    return unused;
}

static NOINLINE void *receive(void *unused)
{
    await(1);
    for (int i = 0; i < TIMES; i++)
        atomic_fetch_add(&flag, 1);
    reach(2);
    await(3);
    MUST(atomic_load_explicit(&flag, memory_order_acquire) == -1);
    MUST(data == TIMES);
    return unused;
}

int main(void)
{
    run_both(send, receive);
    return 0;
}
