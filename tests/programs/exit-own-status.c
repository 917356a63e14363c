// expect: none
// runs: 10
// exit: 7
// The program's own status when nothing is reported.
#include <unistd.h>

#include "tests/programs/order.h"

static void *work(void *unused)
{
    return unused;
}

int main(void)
{
    run_both(work, work);
    return 7;
}
