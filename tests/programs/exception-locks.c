// expect: none
// options: on_race=exception
/* A race on a lock itself is raised when the lock is taken, and it is noted as taken: it can be given back. Functions of libc that are
 * done when their race is known raise it then. */
#include <redflag.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/order.h"

static pthread_mutex_t lock;
static char buffer[16];
static int ends[2];

static void *first(void *unused)
{
    MUST(pthread_mutex_init(&lock, NULL) == 0);
    buffer[3] = 1;
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    volatile int caught = 0;
    await(1);
    redflag_try {
        pthread_mutex_lock(&lock);
        MUST(0);
    } redflag_catch (race) {
        caught++;
        MUST(race->address == &lock);
    }
    MUST(caught == 1);
    MUST(pthread_mutex_unlock(&lock) == 0);
    redflag_try {
        MUST(read(ends[0], buffer, sizeof buffer) == 4);
        MUST(0);
    } redflag_catch (race) {
        caught++;
        MUST((char *)race->address >= buffer && (char *)race->address < buffer + sizeof buffer);
    }
    MUST(caught == 2);
    return unused;
}

int main(void)
{
    MUST(pipe(ends) == 0 && write(ends[1], "abcd", 4) == 4);
    run_both(first, second);
    MUST(pthread_mutex_destroy(&lock) == 0);
    return 0;
}
