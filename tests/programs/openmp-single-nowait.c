// expect: race
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// race-at: set get
// single nowait orders nothing.
#include "tests/programs/order.h"
#include <omp.h>

static volatile int shared;

static NOINLINE void set(void)
{
    shared = 1;
    reach(1);
}

static NOINLINE void get(void)
{
    MUST(shared == 1);
}

int main(void)
{
#pragma omp parallel num_threads(2)
    {
        int mine = 0;
#pragma omp single nowait
        {
            mine = 1;
            set();
        }
        await(1);
        if (!mine)
            get();
    }
    return 0;
}
