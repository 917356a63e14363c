// expect: race
// reports: 1
// text: Counter.increment counter.tiny:7
// text: Worker.run counter.tiny:21
// An interpreter's accesses have the places of the program that it runs.
#include "tests/programs/order.h"

#include <redflag.h>

static long counter;
static const void *at_7, *at_21;

static void *interpret(void *unused)
{
    redflag_system_begin();
    redflag_call(at_21);
    redflag_write(&counter, sizeof counter, at_7);
    redflag_return();
    redflag_system_end();
    return unused;
}

int main(void)
{
    at_7 = redflag_place("Counter.increment", "counter.tiny", 7);
    at_21 = redflag_place("Worker.run", "counter.tiny", 21);
    run_both(interpret, interpret);
    return 0;
}
