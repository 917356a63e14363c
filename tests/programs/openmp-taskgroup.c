// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// A taskgroup waits for descendants, too.
#include "tests/programs/order.h"
#include <omp.h>

static int values[20];

int main(void)
{
#pragma omp parallel num_threads(4)
#pragma omp single
    for (int round = 0; round < 10; round++) {
#pragma omp taskgroup
        for (int i = 0; i < 20; i++) {
#pragma omp task firstprivate(i)
            {
#pragma omp task firstprivate(i)
                values[i]++;
            }
        }
        for (int i = 0; i < 20; i++)
            MUST(values[i] == round + 1);
    }
    return 0;
}
