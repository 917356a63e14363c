// expect: race
// options: transactions=writes
// race-at: first second
// compilers: gcc
// flags: -fgnu-tm
/* With transactions=writes one that reads comes after one that wrote; two that write do not race, and order nothing. */
#include "tests/programs/order.h"

static int one, plain;

static NOINLINE void *first(void *unused)
{
    plain = 1;
    __transaction_atomic {
        one++;
    }
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    __transaction_atomic {
        one = 5;
    }
    plain = 2;
    return unused;
}

int main(void)
{
    run_both(first, second);
    MUST(plain == 2 && one == 5);
    return 0;
}
