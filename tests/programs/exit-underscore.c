// expect: none
// runs: 10
// exit: 9
// _exit ends at once with its status.
#include <unistd.h>

#include "tests/programs/order.h"

static void *work(void *unused)
{
    return unused;
}

int main(void)
{
    run_both(work, work);
    _exit(9);
}
