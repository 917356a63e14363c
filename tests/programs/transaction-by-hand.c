// expect: none
// runs: 3
// stock: it does not know of transactions
/* A program's own transactions, by a lock that is not seen: they are ordered by what they share, and what is undone is forgotten. */
#include <redflag.h>

#include "tests/programs/order.h"

static int hidden, shared, plain, undone;

static void enter(void)
{
    int taken = 1;
    for (;;) {
        __asm__ volatile("xchgl %0, %1" : "+r"(taken), "+m"(hidden) : : "memory");
        if (!taken)
            break;
        hidden_yield();
    }
    redflag_txn_begin();
}

static void leave(void)
{
    redflag_txn_commit();
    __asm__ volatile("movl $0, %0" : "=m"(hidden) : : "memory");
}

static void *first(void *unused)
{
    plain = 1;
    for (int i = 0; i < 1000; i++) {
        enter();
        redflag_txn_begin();
        shared++;
        redflag_txn_commit();
        leave();
    }
    redflag_txn_begin();
    undone = 1;
    redflag_txn_abort();
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    for (int seen = 0; seen < 1000;) {
        enter();
        seen = shared;
        leave();
    }
    MUST(plain == 1);
    await(1);
    undone = 2;
    return unused;
}

int main(void)
{
    run_both(first, second);
    MUST(shared == 1000 && undone == 2);
    return 0;
}
