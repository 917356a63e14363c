// expect: race
// race-at: jumper top second
// no-text: lost
// After a longjmp the functions that were left are in no stack.
#include "tests/programs/order.h"

#include <setjmp.h>

static jmp_buf back;
int data;

static NOINLINE void lost(int n)
{
    if (n)
        lost(n - 1);
    else
        longjmp(back, 1);
    data++;
}

static NOINLINE void top(void)
{
    data = 1;
}

static NOINLINE void *jumper(void *unused)
{
    for (volatile int i = 0; i < 20000; i++)
        if (!setjmp(back))
            lost(50);
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

int main(void)
{
    run_both(jumper, second);
    return 0;
}
