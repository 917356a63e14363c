// expect: race
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// race-at: get set
// Without the second barrier the next round's write races with this round's read.
#include "tests/programs/order.h"
#include <omp.h>

static volatile int value;

static NOINLINE void set(void)
{
    value = 2;
}

static NOINLINE void get(void)
{
    MUST(value == 1);
}

int main(void)
{
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            value = 1;
#pragma omp barrier
        if (omp_get_thread_num() == 1) {
            get();
            reach(1);
        } else {
            await(1);
            set();
        }
    }
    return 0;
}
