// expect: race
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// race-at: touch
// Two threads of a region race in a later region, too.
#include "tests/programs/order.h"
#include <omp.h>

static volatile int shared, other[4];

static NOINLINE void touch(void)
{
    shared = omp_get_thread_num();
}

int main(void)
{
    for (int i = 0; i < 10; i++) {
#pragma omp parallel num_threads(2)
        other[omp_get_thread_num()] = i;
    }
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
