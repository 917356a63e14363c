// expect: none
// options: sync=fib:fib_patience=2000000000
/* Every hook is a yield point, also one that finds that its access repeats another: the owner of a word does nothing else, and who wants
 * the word is so patient that it would never be taken over. */
#include "tests/programs/order.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long wanted, mine;
static volatile int owned, done; /* nobody hears of them */

static __attribute__((noinline, no_sanitize("thread"))) int heard(volatile int *word)
{
    return *word;
}

static __attribute__((noinline, no_sanitize("thread"))) void say(volatile int *word)
{
    *word = 1;
}

static void *owner(void *unused)
{
    MUST(pthread_mutex_lock(&lock) == 0);
    wanted = 1;
    MUST(pthread_mutex_unlock(&lock) == 0);
    mine++;
    say(&owned);
    while (!heard(&done))
        mine++;
    return unused;
}

int main(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, owner, NULL) == 0);
    while (!heard(&owned))
        ;
    MUST(pthread_mutex_lock(&lock) == 0);
    wanted++;
    MUST(pthread_mutex_unlock(&lock) == 0);
    say(&done);
    MUST(pthread_join(thread, NULL) == 0);
    MUST(wanted == 2);
    return 0;
}
