// expect: race
// reports: 1
// race-at: look change
// What two threads have read moves with both of them remembered; an access to the old place is none to the new one.
#include "tests/programs/order.h"

#include <redflag.h>

static long heap[512];

static NOINLINE long look(int index)
{
    return *(volatile long *)&heap[index];
}

static NOINLINE void change(int index)
{
    heap[index] = 1;
}

static void *first(void *unused)
{
    for (int i = 0; i < 4; i++)
        look(i);
    reach(1);
    await(4);
    redflag_acquire(&heap); /* knows of the other's reads, not of its own being known */
    heap[300] = 1;
    return unused;
}

static void *second(void *unused)
{
    await(1);
    for (int i = 0; i < 4; i++)
        look(i);
    redflag_copy_history(&heap[100], &heap[0], 4 * sizeof *heap);
    redflag_move_history(&heap[300], &heap[200], 4 * sizeof *heap);
    redflag_release(&heap);
    change(102);
    reach(4);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
