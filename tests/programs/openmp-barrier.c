// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// A barrier orders what all did before it and what all do after it.
#include "tests/programs/order.h"
#include <omp.h>

static int values[4], seen[4];

int main(void)
{
#pragma omp parallel num_threads(4)
    {
        int me = omp_get_thread_num();
        for (int round = 0; round < 50; round++) {
            values[me] = round;
#pragma omp barrier
            for (int i = 0; i < 4; i++)
                MUST(values[i] == round);
#pragma omp barrier
        }
        seen[me] = values[(me + 1) % 4];
    }
    MUST(seen[0] == 49);
    return 0;
}
