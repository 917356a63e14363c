// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// taskloop, with its implicit group, and without.
#include "tests/programs/order.h"
#include <omp.h>

static int values[200], copies[200];

int main(void)
{
    int base = 7;
#pragma omp parallel num_threads(4)
#pragma omp single
    {
#pragma omp taskloop grainsize(7) firstprivate(base)
        for (int i = 0; i < 200; i++) {
            base++;
            values[i] = i;
        }
        for (int i = 0; i < 200; i++)
            MUST(values[i] == i);
#pragma omp taskloop num_tasks(9) nogroup
        for (unsigned long long i = 0; i < 200; i++)
            copies[i] = values[199 - i];
#pragma omp taskwait
        for (int i = 0; i < 200; i++)
            MUST(copies[i] == 199 - i);
    }
    return 0;
}
