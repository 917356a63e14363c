// expect: race
// reports: 1
// race-at: change
// What two threads have read moves by one byte, within a granule: both reads come with it.
#include "tests/programs/order.h"

#include <redflag.h>

static char heap[32] __attribute__((aligned(8)));

static NOINLINE short look(void)
{
    return *(volatile short *)(heap + 8);
}

static NOINLINE void change(void)
{
    heap[8] = 1;
}

static void *first(void *unused)
{
    look();
    reach(1);
    await(2);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    look();
    redflag_move_history(heap + 8, heap + 9, 2); /* what is at 9 goes to 8 */
    change();
    reach(2);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
