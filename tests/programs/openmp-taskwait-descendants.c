// expect: race
// runs: 5
// flags: -fopenmp
// compilers: gcc
// environment: OMP_NUM_THREADS=4
// race-at: grandchild parent
// taskwait waits for children only: a grandchild races.
#include "tests/programs/order.h"
#include <omp.h>

static volatile int shared;

static NOINLINE void grandchild(void)
{
    await(1);
    shared = 1;
    reach(2);
}

static NOINLINE void parent(void)
{
    reach(1);
    await(2);
    MUST(shared == 1);
}

int main(void)
{
#pragma omp parallel num_threads(3)
#pragma omp single
    {
#pragma omp task
        {
#pragma omp task
            grandchild();
        }
#pragma omp taskwait
        parent();
    }
    return 0;
}
