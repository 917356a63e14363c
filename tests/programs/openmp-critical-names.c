// expect: race
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// race-at: touch
// Two names are two locks.
#include "tests/programs/order.h"
#include <omp.h>

static volatile long shared;

static NOINLINE void touch(void)
{
    shared = 1;
}

int main(void)
{
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp critical(one)
            touch();
            reach(1);
        } else {
            await(1);
#pragma omp critical(two)
            touch();
        }
    }
    return 0;
}
