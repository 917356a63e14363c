/* Ten races, each between one write and one read, spread over a run with much synchronisation: what bench/pacer.sh counts. The first thread
 * is done before the second one begins to read; nothing that a detector sees orders the two.
 * `pacer_races CALLS`: before its race each function is called so often, from the same place, for memory that is the thread's own. */
#include "tests/programs/order.h"

/* The work between two races is no multiple of a period: else all of a run would lie at the same place of theirs. */
enum { RACES = 10, WORK = 173 };

int shared[RACES * 16];
static long calls_before;
static pthread_mutex_t mine[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };

static void work(int who)
{
    for (int i = 0; i < WORK; i++) {
        pthread_mutex_lock(&mine[who]);
        pthread_mutex_unlock(&mine[who]);
    }
}

/* Each race has functions of its own, so that each is one report. */
#define RACE(i)                                                                                                             \
    __attribute__((noinline)) void write_##i(int *to)                                                                       \
    {                                                                                                                       \
        *to = 1;                                                                                                            \
    }                                                                                                                       \
    __attribute__((noinline)) int read_##i(const int *from)                                                                 \
    {                                                                                                                       \
        return *from;                                                                                                       \
    }
#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)
ALL(RACE)

#define HIDE(value) __asm__ volatile("" : "+r"(value)) /* else the last call has a place of its own */

static void *first(void *unused)
{
#define WRITE(i)                                                                                                            \
    work(0);                                                                                                                \
    for (long left = calls; left >= 0; left--) {                                                                            \
        int *place = left ? own : &shared[(i)*16];                                                                          \
        HIDE(place);                                                                                                        \
        write_##i(place);                                                                                                   \
    }
    int own[16];
    const long calls = calls_before;
    ALL(WRITE)
    work(0);
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    int sum = 0, own[16] = { 0 };
    const long calls = calls_before;
    await(1);
#define READ(i)                                                                                                             \
    work(1);                                                                                                                \
    for (long left = calls; left >= 0; left--) {                                                                            \
        int *place = left ? own : &shared[(i)*16];                                                                          \
        HIDE(place);                                                                                                        \
        sum += read_##i(place);                                                                                             \
    }
    ALL(READ)
    MUST(sum == RACES);
    return unused;
}

int main(int argc, char **argv)
{
    calls_before = argc > 1 ? atol(argv[1]) : 0;
    run_both(first, second);
    return 0;
}
