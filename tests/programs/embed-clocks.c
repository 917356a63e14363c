// expect: race
// reports: 1
// race-at: too_early
// Clocks carry what was read into them, what was added, and what was joined; not what came later, and not what was replaced.
#include "tests/programs/order.h"

#include <redflag.h>

long data[4];
static struct redflag_clock *one, *more, *copy;

static NOINLINE void too_early(void)
{
    data[3] = 2;
}

static void *first(void *unused)
{
    data[0] = 1;
    redflag_clock_read(one);
    data[1] = 1;
    redflag_clock_add(more);
    redflag_clock_join(copy, one);
    redflag_clock_join(copy, more);
    data[3] = 1;
    redflag_clock_add(more); /* not in the copy */
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    redflag_clock_write(copy);
    data[0] = 2;
    data[1] = 2;
    too_early();
    return unused;
}

int main(void)
{
    one = redflag_clock_new();
    more = redflag_clock_new();
    copy = redflag_clock_new();
    run_both(first, second);
    redflag_clock_free(one);
    redflag_clock_free(more);
    redflag_clock_free(copy);
    return 0;
}
