// expect: none
// runs: 10
// A race that the program calls benign is not reported.
#include "tests/programs/order.h"

void AnnotateBenignRaceSized(const char *file, int line, const volatile void *addr, unsigned long size, const char *why);

static int data[4];

static NOINLINE void *first(void *unused)
{
    AnnotateBenignRaceSized(__FILE__, __LINE__, data, sizeof data, "statistics");
    data[2] = 1;
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    data[2]++;
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
