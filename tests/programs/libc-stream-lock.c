// expect: none
// runs: 10
// stock: does not know flockfile
// flockfile and funlockfile are a lock.
#define _GNU_SOURCE
#include "tests/programs/order.h"

int count; /* not static: libc says that flockfile() cannot touch what is */

static NOINLINE void *adds(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        flockfile(stdout);
        count++;
        funlockfile(stdout);
    }
    return unused;
}

int main(void)
{
    run_both(adds, adds);
    MUST(count == 2000);
    return 0;
}
