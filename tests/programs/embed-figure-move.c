// expect: race
// runs: 5
// race-at: increment
// reports: 1
// Wood, Figure 4.1, lower right: two threads increment o.n without synchronisation; between the two a collector moves the object.
#include "tests/programs/order.h"

#include <string.h>

#include <redflag.h>

struct object {
    long header, n, other;
};
static struct object heap[2], *o = &heap[0];

static NOINLINE void increment(struct object *object)
{
    object->n++;
}

static void *first(void *unused)
{
    increment(&heap[0]);
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    redflag_system_begin();
    memcpy(&heap[1], &heap[0], sizeof heap[0]);
    redflag_move_history(&heap[1], &heap[0], sizeof heap[0]);
    o = &heap[1];
    redflag_system_end();
    heap[0].n = 7; /* another object by now: no race */
    increment(&heap[1]);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
