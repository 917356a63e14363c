// expect: none
// runs: 5
// Wood, Figure 4.1, lower left: two objects, one after the other, in the same memory; their threads have nothing to do with each other.
#include "tests/programs/order.h"

#include <redflag.h>

long heap[8]; /* room for one object */

static void *first(void *unused)
{
    for (int i = 0; i < 8; i++)
        heap[i] = 1;
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    redflag_system_begin();
    redflag_clear_history(heap, sizeof heap);
    redflag_system_end();
    for (int i = 0; i < 8; i++)
        heap[i] = 2;
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
