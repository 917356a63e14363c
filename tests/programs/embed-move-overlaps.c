// expect: race
// reports: 2
// race-at: write_at
// An object slides by a few bytes, unaligned, both ways, with a history in parts of granules: each byte's history comes with it, and no
// other's does.
#include "tests/programs/order.h"

#include <redflag.h>

static unsigned char heap[64] __attribute__((aligned(8)));

static NOINLINE void write_at(int index)
{
    heap[index]++;
}

static void *first(void *unused)
{
    write_at(10);
    write_at(12);
    reach(1);
    await(2);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    redflag_move_history(heap + 13, heap + 8, 20); /* 10 -> 15, 12 -> 17 */
    write_at(10);
    write_at(12);
    write_at(14);
    write_at(16);
    write_at(18);
    redflag_move_history(heap + 5, heap + 13, 20); /* 15 -> 7, 17 -> 9; what this thread wrote at 14, 16, 18 comes too */
    write_at(6);
    write_at(8);
    write_at(15);
    write_at(17);
    write_at(7);
    write_at(9);
    reach(2);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
