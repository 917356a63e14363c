// expect: race
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// race-at: put get
// nowait: no barrier at the end of the loop.
#include "tests/programs/order.h"
#include <omp.h>

static volatile int values[2];

static NOINLINE void put(int i)
{
    values[i] = 1;
}

static NOINLINE int get(int i)
{
    return values[i];
}

int main(void)
{
#pragma omp parallel num_threads(2)
    {
        int me = omp_get_thread_num();
#pragma omp for schedule(static, 1) nowait
        for (int i = 0; i < 2; i++)
            if (i == 0)
                put(i);
        if (me == 0) {
            reach(1);
        } else {
            await(1);
            MUST(get(0) == 1);
        }
    }
    return 0;
}
