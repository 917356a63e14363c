// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// The end of a work-sharing loop is a barrier, with every schedule.
#include "tests/programs/order.h"
#include <omp.h>

static int values[256], doubled[256];

#define BOTH(kind)                                \
    _Pragma("omp parallel num_threads(4)")        \
    {                                             \
        _Pragma(kind)                             \
        for (int i = 0; i < 256; i++)             \
            values[i] = i;                        \
        _Pragma(kind)                             \
        for (int i = 0; i < 256; i++)             \
            doubled[i] = 2 * values[255 - i];     \
    }                                             \
    MUST(doubled[0] == 510 && doubled[255] == 0);

int main(void)
{
    BOTH("omp for schedule(static)")
    BOTH("omp for schedule(static, 3)")
    BOTH("omp for schedule(dynamic, 5)")
    BOTH("omp for schedule(guided)")
    BOTH("omp for schedule(runtime)")
    BOTH("omp for schedule(auto)")
    unsigned long long sum = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : sum)
    for (unsigned long long i = 0; i < 100; i++)
        sum += i;
    MUST(sum == 4950);
    return 0;
}
