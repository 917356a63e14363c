// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// A task comes after its creation, and before the end of its taskwait.
#include "tests/programs/order.h"
#include <omp.h>

static int fib(int n)
{
    int a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a) firstprivate(n)
    a = fib(n - 1);
#pragma omp task shared(b) firstprivate(n) if (n > 5)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(void)
{
    int result = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
    result = fib(12);
    MUST(result == 144);
    return 0;
}
