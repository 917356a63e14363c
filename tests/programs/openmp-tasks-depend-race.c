// expect: race
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// race-at: first second
// Two tasks that only read by their depend clauses, but write: they may run at once.
#include "tests/programs/order.h"
#include <omp.h>

static volatile int shared;

static NOINLINE void first(void)
{
    shared = 1;
    reach(10);
}

static NOINLINE void second(void)
{
    await(10);
    shared = 2;
}

/* Both tasks run at once, on two threads, before either of them goes on. */
static NOINLINE void meet(void)
{
    arrive();
    await(2);
}

int main(void)
{
#pragma omp parallel num_threads(3)
#pragma omp single
    {
        int name;
#pragma omp task depend(in : name)
        {
            meet();
            first();
        }
#pragma omp task depend(in : name)
        {
            meet();
            second();
        }
#pragma omp taskwait
    }
    return 0;
}
