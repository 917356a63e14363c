// expect: race
// reports: 1
// race-at: increment
// text: green
// Two threads of the language race though one kernel thread runs both, one after the other.
#include "tests/programs/order.h"

#include <redflag.h>

static long counter;

static NOINLINE void increment(void)
{
    counter++;
}

int main(void)
{
    struct redflag_thread *threads[2] = { redflag_thread_new("green 1"), redflag_thread_new("green 2") };
    for (int i = 0; i < 2; i++) {
        redflag_thread_run(threads[i]);
        increment();
        redflag_thread_run(NULL);
    }
    for (int i = 0; i < 2; i++)
        redflag_thread_join(threads[i]);
    counter++; /* after both */
    MUST(counter == 3);
    return 0;
}
