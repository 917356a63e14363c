// expect: none
// options: sync=fib:fib_patience=2000000000
/* Atomic accesses are yield points, too, also if they repeat others: the owner of a word does nothing else than look at a flag, and who
 * wants the word is so patient that it would never be taken over. */
#include <stdatomic.h>

#include "tests/programs/order.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long wanted;
static atomic_int owned, done;

static void *owner(void *unused)
{
    MUST(pthread_mutex_lock(&lock) == 0);
    wanted = 1;
    MUST(pthread_mutex_unlock(&lock) == 0);
    atomic_store(&owned, 1);
    while (!atomic_load_explicit(&done, memory_order_relaxed))
        ;
    return unused;
}

int main(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, owner, NULL) == 0);
    while (!atomic_load(&owned))
        ;
    MUST(pthread_mutex_lock(&lock) == 0);
    wanted++;
    MUST(pthread_mutex_unlock(&lock) == 0);
    atomic_store_explicit(&done, 1, memory_order_relaxed);
    MUST(pthread_join(thread, NULL) == 0);
    MUST(wanted == 2);
    return 0;
}
