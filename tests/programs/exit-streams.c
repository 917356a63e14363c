// expect: race
// text: written before the end
// What stdio still holds is written out, although the status changes.
#include "tests/programs/order.h"

int shared;

static void *one(void *unused)
{
    shared = 1;
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    shared = 2;
    return unused;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOFBF, 4096);
    run_both(one, two);
    fputs("written before the end", stdout);
    return 0;
}
