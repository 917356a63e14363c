// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// A region is forked and joined; data before, inside and after; regions use threads again.
#include "tests/programs/order.h"
#include <omp.h>

static int values[64], total;

int main(void)
{
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 64; i++)
            values[i] = i;
#pragma omp parallel for
        for (int i = 0; i < 64; i++)
            values[i] += round;
        int sum = 0;
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < 64; i++)
            sum += values[i];
        MUST(sum == 64 * 63 / 2 + 64 * round);
        total += sum;
    }
    MUST(total > 0);
    return 0;
}
