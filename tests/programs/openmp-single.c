// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// single ends with a barrier; copyprivate hands values to all; master needs one.
#include "tests/programs/order.h"
#include <omp.h>

static int shared, mastered;

int main(void)
{
#pragma omp parallel num_threads(4)
    {
        int mine = 0;
        for (int i = 0; i < 20; i++) {
#pragma omp single
            shared = i;
            MUST(shared == i);
#pragma omp barrier
#pragma omp single copyprivate(mine)
            {
                mine = i + 1;
                shared = -1;
            }
            MUST(mine == i + 1 && shared == -1);
#pragma omp master
            mastered = i;
#pragma omp barrier
            MUST(mastered == i);
#pragma omp barrier
        }
    }
    return 0;
}
