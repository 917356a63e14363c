// expect: none
// compilers: gcc
// flags: -fgnu-tm
// runs: 3
// stock: libitm's own synchronisation is invisible to it
/* What was rolled back did not happen: neither a transaction that was cancelled, nor the inner one of two, nor the attempts that
 * contention made fail. */
#include "tests/programs/order.h"

static int outer, inner, cancelled, busy[4];

static void *first(void *unused)
{
    __transaction_atomic {
        cancelled = 1;
        __transaction_cancel;
    }
    __transaction_atomic {
        outer = 1;
        __transaction_atomic {
            inner = 1;
            __transaction_cancel;
        }
    }
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    cancelled = 2;
    inner = 2;
    return unused;
}

static void *contend(void *unused)
{
    for (int i = 0; i < 2000; i++)
        __transaction_atomic {
            for (int k = 0; k < 4; k++)
                busy[(i + k) % 4]++;
        }
    return unused;
}

int main(void)
{
    run_both(first, second);
    run_both(contend, contend);
    MUST(outer == 1 && inner == 2 && cancelled == 2);
    MUST(busy[0] == 4000 && busy[1] == 4000 && busy[2] == 4000 && busy[3] == 4000);
    return 0;
}
