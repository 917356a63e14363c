// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// sections end with a barrier.
#include "tests/programs/order.h"
#include <omp.h>

static int a, b, c;

int main(void)
{
#pragma omp parallel num_threads(3)
    {
#pragma omp sections
        {
#pragma omp section
            a = 1;
#pragma omp section
            b = 2;
#pragma omp section
            c = 3;
        }
        MUST(a + b + c == 6);
    }
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        a = 4;
#pragma omp section
        b = 5;
    }
    MUST(a + b + c == 12);
    return 0;
}
