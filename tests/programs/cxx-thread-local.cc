// expect: none
// runs: 10
// Objects of threads are made and destroyed in them.
#include <atomic>

#include "tests/programs/order.h"

static std::atomic<int> alive;

struct thing {
    int value;
    thing() : value(1)
    {
        alive++;
    }
    ~thing()
    {
        alive--;
    }
};

static thread_local thing mine;

static void *work(void *unused)
{
    mine.value++;
    MUST(mine.value == 2);
    return unused;
}

int main()
{
    for (int i = 0; i < 20; i++)
        run_both(work, work);
    MUST(alive == 0);
    return 0;
}
