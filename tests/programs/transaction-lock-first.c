// expect: race
// compilers: gcc
// flags: -fgnu-tm
// runs: 5
// race-at: withdraw
// race-at: transfer
/* Goldilocks, Example 4, the other way round: found at the commit. The same account in a transaction and under a lock. What the transaction is made of does not count. */
#include "tests/programs/order.h"

static struct account {
    pthread_mutex_t lock;
    int balance;
} checking = { PTHREAD_MUTEX_INITIALIZER, 100 }, savings = { PTHREAD_MUTEX_INITIALIZER, 100 };

static NOINLINE void transfer(int amount)
{
    __transaction_atomic {
        savings.balance -= amount;
        checking.balance += amount;
    }
}

static NOINLINE void withdraw(struct account *account, int amount)
{
    pthread_mutex_lock(&account->lock);
    account->balance -= amount;
    pthread_mutex_unlock(&account->lock);
}

static void *first(void *unused)
{
    await(1);
    transfer(42);
    return unused;
}

static void *second(void *unused)
{
    withdraw(&checking, 10);
    reach(1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    MUST(checking.balance == 132 && savings.balance == 58);
    return 0;
}
