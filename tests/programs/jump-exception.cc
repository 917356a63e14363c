// expect: race
// race-at: catcher top second
// no-text: lost
// After an exception the functions that were left are in no stack.
#include "tests/programs/order.h"

int data;

static NOINLINE void lost(int n)
{
    if (!n)
        throw n;
    lost(n - 1);
    data++;
}

static NOINLINE void top()
{
    data = 1;
}

static NOINLINE void *catcher(void *unused)
{
    for (int i = 0; i < 300; i++)
        try {
            lost(30);
        } catch (int n) {
            MUST(n == 0);
        }
    top();
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    data = 2;
    return unused;
}

int main()
{
    run_both(catcher, second);
    return 0;
}
