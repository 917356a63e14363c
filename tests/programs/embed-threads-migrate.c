// expect: none
// runs: 5
// A thread of the language does not race with itself though two kernel threads run it in turns, and what starts and joins it is ordered.
#include "tests/programs/order.h"

#include <redflag.h>

long counter;
static struct redflag_thread *green;

static void *run(int me)
{
    redflag_system_begin();
    for (int i = 0; i < 50; i++) {
        await(2 * i + me);
        redflag_thread_run(green);
        redflag_write(&counter, sizeof counter, NULL);
        redflag_thread_run(NULL);
        reach(2 * i + me + 1);
    }
    redflag_system_end();
    return NULL;
}

static void *even(void *unused)
{
    run(0);
    return unused;
}

static void *odd(void *unused)
{
    run(1);
    return unused;
}

int main(void)
{
    counter = 1;
    green = redflag_thread_new(NULL);
    redflag_system_begin();
    run_both(even, odd);
    redflag_system_end();
    redflag_thread_join(green);
    counter = 2;
    return 0;
}
