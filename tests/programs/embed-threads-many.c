// expect: none
// Thousands of threads of the language alive at once, and many more one after the other: each hands its work to the next by the clock
// of a lock. What they are known by is used again, and clocks do not grow with the threads there ever were.
#include "tests/programs/order.h"

#include <redflag.h>

enum { ALIVE = 3000, ROUNDS = 20000 };
static struct redflag_thread *threads[ALIVE];
static long turn;

int main(void)
{
    struct redflag_clock *clock = redflag_clock_new();
    for (int i = 0; i < ALIVE; i++)
        threads[i] = redflag_thread_new("alive");
    for (int i = 0; i < ALIVE; i++) {
        redflag_thread_run(threads[i]);
        redflag_clock_write(clock);
        turn++;
        redflag_clock_read(clock);
        redflag_thread_run(NULL);
    }
    for (int i = 0; i < ALIVE; i++)
        redflag_thread_join(threads[i]);
    for (int i = 0; i < ROUNDS; i++) {
        struct redflag_thread *one = redflag_thread_new(NULL);
        redflag_thread_run(one);
        turn++;
        redflag_thread_run(NULL);
        redflag_thread_join(one);
    }
    redflag_clock_free(clock);
    MUST(turn == ALIVE + ROUNDS);
    return 0;
}
