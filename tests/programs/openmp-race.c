// expect: race
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// race-at: touch
// Two threads of a region write one variable.
#include "tests/programs/order.h"
#include <omp.h>

static volatile int shared;

static NOINLINE void touch(void)
{
    shared = omp_get_thread_num();
}

int main(void)
{
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            touch();
            reach(1);
        } else {
            await(1);
            touch();
        }
    }
    return 0;
}
