// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// firstprivate data of a task lies where another task had its own.
#include "tests/programs/order.h"
#include <omp.h>

struct block {
    long words[40];
};

static NOINLINE long sum(struct block *block, int i)
{
    long total = 0;
    for (int k = 0; k < 40; k++) {
        block->words[k] += i;
        total += block->words[k];
    }
    return total;
}

int main(void)
{
    static long totals[300];
    struct block block = { { 1 } };
#pragma omp parallel num_threads(4)
#pragma omp for
    for (int i = 0; i < 300; i++) {
#pragma omp task firstprivate(block, i)
        totals[i] = sum(&block, i);
    }
    for (int i = 0; i < 300; i++)
        MUST(totals[i] == 40L * i + 1);
    return 0;
}
