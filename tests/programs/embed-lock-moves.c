// expect: none
// runs: 5
// A lock of the language is an object; a collector moves it while a thread holds it. It is still held, and still orders.
#include "tests/programs/order.h"

#include <redflag.h>

long heap[16], data;

static void *first(void *unused)
{
    redflag_lock(&heap[0], 0);
    data = 1;
    redflag_move_history(&heap[9], &heap[1], 4 * sizeof *heap); /* not this one */
    redflag_move_history(&heap[8], &heap[0], sizeof *heap);
    data = 2;
    redflag_unlock(&heap[8], 0);
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    redflag_lock(&heap[8], 0);
    data = 3;
    redflag_unlock(&heap[8], 0);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
