// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// Regions inside regions.
#include "tests/programs/order.h"
#include <omp.h>

static int values[2][2];

int main(void)
{
    omp_set_max_active_levels(2);
    for (int round = 0; round < 10; round++) {
#pragma omp parallel num_threads(2)
        {
            int outer = omp_get_thread_num();
#pragma omp parallel num_threads(2)
            values[outer][omp_get_thread_num()] = round;
            if (omp_get_max_active_levels() > 1)
                MUST(values[outer][0] == round);
        }
        MUST(values[0][0] == round && values[1][0] == round);
    }
    return 0;
}
