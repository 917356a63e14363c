// expect: race
// runs: 10
// race-at: first second
// Two threads append to one vector.
#include <vector>

#include "tests/programs/order.h"

static std::vector<int> numbers;

NOINLINE void first()
{
    numbers.push_back(1);
}

NOINLINE void second()
{
    numbers.push_back(2);
}

static void *one(void *unused)
{
    first();
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    second();
    return unused;
}

int main()
{
    run_both(one, two);
    return 0;
}
