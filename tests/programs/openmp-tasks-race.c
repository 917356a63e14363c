// expect: race
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// race-at: child parent
// A task and its creator, which does not wait.
#include "tests/programs/order.h"
#include <omp.h>

static volatile int shared;

static NOINLINE void child(void)
{
    shared = 1;
    reach(1);
}

static NOINLINE void parent(void)
{
    await(1);
    MUST(shared == 1);
}

int main(void)
{
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        child();
        parent();
    }
    return 0;
}
