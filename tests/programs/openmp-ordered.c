// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// ordered sections come one after the other.
#include "tests/programs/order.h"
#include <omp.h>

static int list[100], count;

int main(void)
{
#pragma omp parallel for ordered schedule(dynamic) num_threads(4)
    for (int i = 0; i < 100; i++) {
#pragma omp ordered
        list[count++] = i;
    }
    for (int i = 0; i < 100; i++)
        MUST(list[i] == i);
    return 0;
}
