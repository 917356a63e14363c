// expect: race
// race-at: add look
// reports: 1
// runs: 10
// The same for updates that release: of one that came after what the other has received nothing is known there, though it was published.
#include "tests/programs/order.h"
#include <stdatomic.h>

static atomic_llong counter;

static NOINLINE void add(void)
{
    atomic_fetch_add(&counter, 1);
}

static NOINLINE long long look(void)
{
    return *(volatile long long *)&counter;
}

static NOINLINE void *first(void *unused)
{
    for (int i = 0; i < 100; i++)
        add();
    reach(1);
    await(2);
    for (int i = 0; i < 100; i++)
        add();
    reach(3);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    for (int i = 0; i < 100; i++)
        add();
    reach(2);
    await(3);
    MUST(look() == 300);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
