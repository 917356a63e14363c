// expect: race
// race-at: add look
// reports: 1
// runs: 10
// Each relaxed update counts, however many came before: what the other has received of them ends with the last update that released.
#include "tests/programs/order.h"
#include <stdatomic.h>

static atomic_llong counter, relaxed; /* a word each */

static NOINLINE void add(void)
{
    atomic_fetch_add_explicit(&relaxed, 1, memory_order_relaxed);
}

static NOINLINE long long look(void)
{
    return *(volatile long long *)&relaxed;
}

static NOINLINE void *first(void *unused)
{
    for (int i = 0; i < 100; i++) {
        add();
        atomic_fetch_add(&counter, 1);
    }
    reach(1);
    await(2);
    add();
    reach(3);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(atomic_fetch_add(&counter, 1) == 100);
    reach(2);
    await(3);
    MUST(look() == 101);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
