// expect: none
// runs: 5
// Wood, Figure 4.1, upper right: a collector reads o.x while it traverses the heap; the program writes o.x later, and nothing orders them.
// The read is the runtime system's.
#include "tests/programs/order.h"

#include <redflag.h>

static long object[2];
static long sum;

static NOINLINE long traverse(void)
{
    long seen = 0;
    for (int i = 0; i < 2; i++)
        seen += object[i];
    return seen;
}

static void *collector(void *unused)
{
    redflag_system_begin();
    sum = traverse();
    redflag_system_end();
    reach(1);
    return unused;
}

static void *program(void *unused)
{
    await(1);
    object[1] = 5;
    redflag_system_begin();
    sum = 7; /* and a write of the system's own beside the collector's */
    redflag_system_end();
    return unused;
}

int main(void)
{
    run_both(collector, program);
    return 0;
}
