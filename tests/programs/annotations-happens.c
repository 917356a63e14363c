// expect: none
// runs: 10
// What the program says comes before, comes before.
#include "tests/programs/order.h"

void AnnotateHappensBefore(const char *file, int line, const volatile void *addr);
void AnnotateHappensAfter(const char *file, int line, const volatile void *addr);

static int data, mark;

static NOINLINE void *first(void *unused)
{
    data = 1;
    AnnotateHappensBefore(__FILE__, __LINE__, &mark);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    AnnotateHappensAfter(__FILE__, __LINE__, &mark);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
