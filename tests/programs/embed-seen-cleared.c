// expect: race
// reports: 1
// race-at: look change
// Memory that is read by two is used again for another object while both are in the same epoch: they read it again, and that counts.
#include "tests/programs/order.h"

#include <redflag.h>

static long heap[4];

static NOINLINE void look(void)
{
    for (int i = 0; i < 3; i++)
        (void)*(volatile long *)heap;
}

static NOINLINE void change(void)
{
    heap[0] = 1;
}

static void *first(void *unused)
{
    look();
    reach(1);
    await(2);
    look(); /* both have read it: it is remembered as seen */
    reach(3);
    await(4);
    look(); /* the new object */
    reach(5);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    look();
    reach(2);
    await(3);
    redflag_clear_history(heap, sizeof heap);
    reach(4);
    await(5);
    change();
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
