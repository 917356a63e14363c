// expect: race
// compilers: gcc
// flags: -fgnu-tm
// runs: 3
// race-at: add
// race-at: second
/* A transaction that an exception has left was committed: what it wrote, in a function that it called, races with a plain access. */
#include "tests/programs/order.h"

static int balance;

__attribute__((transaction_safe, noinline)) static void add(int amount)
{
    balance += amount;
}

static void *first(void *unused)
{
    try {
        __transaction_atomic {
            add(1);
            throw 5;
        }
    } catch (int) {
        reach(1);
    }
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    balance = 2;
    return unused;
}

int main()
{
    run_both(first, second);
    MUST(balance == 2);
    return 0;
}
