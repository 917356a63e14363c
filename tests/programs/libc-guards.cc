// expect: none
// runs: 10
// A static variable of a function is initialised once, before all uses.
#include "tests/programs/order.h"

struct thing {
    int a, b;
    thing() : a(1), b(2) { hidden_sleep(10); }
};

static NOINLINE thing &only()
{
    static thing one;
    return one;
}

static NOINLINE void *uses(void *unused)
{
    for (int i = 0; i < 100; i++)
        MUST(only().a + only().b == 3);
    return unused;
}

int main()
{
    run_both(uses, uses);
    return 0;
}
