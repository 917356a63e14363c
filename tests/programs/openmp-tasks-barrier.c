// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// Tasks are over when a barrier or the region is.
#include "tests/programs/order.h"
#include <omp.h>

static int values[100], later[100];

int main(void)
{
#pragma omp parallel num_threads(4)
    {
#pragma omp single
        for (int i = 0; i < 100; i++) {
#pragma omp task firstprivate(i)
            values[i] = i;
        }
        int sum = 0;
        for (int i = 0; i < 100; i++)
            sum += values[i];
        MUST(sum == 4950);
#pragma omp for nowait
        for (int i = 0; i < 100; i++) {
#pragma omp task firstprivate(i)
            {
#pragma omp task firstprivate(i)
                later[i] = values[99 - i];
            }
        }
    }
    for (int i = 0; i < 100; i++)
        MUST(later[i] == 99 - i);
    return 0;
}
