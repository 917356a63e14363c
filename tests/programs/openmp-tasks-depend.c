// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// depend clauses order tasks: writers, readers, and writers again.
#include "tests/programs/order.h"
#include <omp.h>

int main(void)
{
    int a = 0, b = 0, c = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
    for (int i = 0; i < 50; i++) {
#pragma omp task depend(out : a) shared(a) firstprivate(i)
        a = i;
#pragma omp task depend(in : a) depend(out : b) shared(a, b)
        b = a + 1;
#pragma omp task depend(in : a) depend(out : c) shared(a, c)
        c = a + 2;
#pragma omp task depend(inout : a, b) depend(in : c) shared(a, b, c)
        {
            MUST(b == a + 1 && c == a + 2);
            a = b = 0;
        }
    }
    MUST(a == 0 && b == 0 && c == 51);
    return 0;
}
