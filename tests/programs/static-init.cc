// expect: none
// runs: 10
// A static variable of a function is made once, by whoever comes first, and all others see it made.
#include "tests/programs/order.h"

struct thing {
    int value;
    thing() : value(0)
    {
        for (int i = 0; i < 100; i++)
            value++;
    }
};

static thing &the_thing()
{
    static thing it;
    return it;
}

static void *use(void *unused)
{
    MUST(the_thing().value == 100);
    return unused;
}

int main()
{
    run_both(use, use);
    return 0;
}
