// expect: none
// runs: 10
// exit: 8
// quick_exit too.
#include <unistd.h>

#include "tests/programs/order.h"

static void *work(void *unused)
{
    return unused;
}

int main(void)
{
    run_both(work, work);
    quick_exit(8);
}
