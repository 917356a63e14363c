// expect: none
// runs: 10
// Each thread has its own copy, and the memory of copies is used again.
#include "tests/programs/order.h"

static __thread int counter;
static __thread char room[3000];

static void *work(void *unused)
{
    for (int i = 0; i < 100; i++)
        counter++;
    room[2999] = 1;
    MUST(counter == 100);
    return unused;
}

int main(void)
{
    for (int i = 0; i < 50; i++)
        run_both(work, work);
    MUST(counter == 0);
    return 0;
}
