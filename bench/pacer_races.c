/* Ten races, each between one write and one read, spread over a run with much synchronisation: what bench/pacer.sh counts. The first thread
 * is done before the second one begins to read; nothing that a detector sees orders the two. */
#include "tests/programs/order.h"

/* The work between two races is no multiple of a period: else all of a run would lie at the same place of theirs. */
enum { RACES = 10, WORK = 173 };

int shared[RACES * 16];
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
    __attribute__((noinline)) void write_##i(void)                                                                          \
    {                                                                                                                       \
        shared[(i)*16] = 1;                                                                                                 \
    }                                                                                                                       \
    __attribute__((noinline)) int read_##i(void)                                                                            \
    {                                                                                                                       \
        return shared[(i)*16];                                                                                              \
    }
#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)
ALL(RACE)

static void *first(void *unused)
{
#define WRITE(i)                                                                                                            \
    work(0);                                                                                                                \
    write_##i();
    ALL(WRITE)
    work(0);
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    int sum = 0;
    await(1);
#define READ(i)                                                                                                             \
    work(1);                                                                                                                \
    sum += read_##i();
    ALL(READ)
    MUST(sum == RACES);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
