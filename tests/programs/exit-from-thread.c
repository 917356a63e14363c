// expect: none
// runs: 10
// exit: 6
// A thread calls exit while others run.
#include "tests/programs/order.h"

static void *forever(void *unused)
{
    for (;;)
        hidden_yield();
    return unused;
}

static void *ends(void *unused)
{
    exit(6);
    return unused;
}

int main(void)
{
    run_both(forever, ends);
    return 0;
}
