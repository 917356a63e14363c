// expect: none
// compilers: gcc
// flags: -fgnu-tm
// runs: 5
// stock: libitm's own synchronisation is invisible to it
/* libitm makes its table of locks when a second thread has its first transaction, and frees it when only one of them is left: in
 * whichever thread that happens, and nothing that the program does orders the two. */
#include <stdatomic.h>

#include "tests/programs/order.h"

static atomic_int turn; /* relaxed: it orders nothing */
static int own[2];

static void come_to(int wanted)
{
    while (atomic_load_explicit(&turn, memory_order_relaxed) < wanted)
        ;
}

static void *first(void *unused)
{
    __transaction_atomic { own[0]++; }
    atomic_store_explicit(&turn, 1, memory_order_relaxed);
    come_to(2);
    return unused; /* frees what the other has allocated */
}

static void *second(void *unused)
{
    come_to(1);
    __transaction_atomic { own[1]++; }
    atomic_store_explicit(&turn, 2, memory_order_relaxed);
    come_to(3);
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    MUST(pthread_create(&threads[0], NULL, first, NULL) == 0);
    MUST(pthread_create(&threads[1], NULL, second, NULL) == 0);
    MUST(pthread_join(threads[0], NULL) == 0);
    atomic_store_explicit(&turn, 3, memory_order_relaxed);
    MUST(pthread_join(threads[1], NULL) == 0);
    return 0;
}
