// expect: race
// runs: 10
// race-at: first second
// Another address is another order.
#include "tests/programs/order.h"

void AnnotateHappensBefore(const char *file, int line, const volatile void *addr);
void AnnotateHappensAfter(const char *file, int line, const volatile void *addr);

static int data, mark, other;

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
    AnnotateHappensAfter(__FILE__, __LINE__, &other);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
