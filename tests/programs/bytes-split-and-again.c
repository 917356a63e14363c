// expect: none
// runs: 10
// A word is accessed in parts by two threads, as a whole after a join, and in parts again.
#include "tests/programs/order.h"

union {
    long whole;
    int half[2];
} shared[100];

static void *low(void *unused)
{
    for (int i = 0; i < 100; i++)
        shared[i].half[0]++;
    return unused;
}

static void *high(void *unused)
{
    for (int i = 0; i < 100; i++)
        shared[i].half[1]++;
    return unused;
}

int main(void)
{
    for (int round = 1; round <= 20; round++) {
        run_both(low, high);
        for (int i = 0; i < 100; i++)
            MUST(shared[i].half[0] == round && shared[i].half[1] == round);
        for (int i = 0; i < 100; i++)
            shared[i].whole += 0;
    }
    return 0;
}
