// expect: none
// options: transactions=all
// compilers: gcc
// flags: -fgnu-tm
/* With transactions=all every commit is ordered with every other. */
#include "tests/programs/order.h"

static int one, other, plain;

static NOINLINE void *first(void *unused)
{
    plain = 1;
    __transaction_atomic {
        one = 1;
    }
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    __transaction_atomic {
        other = 1;
    }
    plain = 2;
    return unused;
}

int main(void)
{
    run_both(first, second);
    MUST(plain == 2 && one && other);
    return 0;
}
