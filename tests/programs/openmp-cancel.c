// expect: none
// runs: 5
// flags: -fopenmp
// compilers: gcc
// environment: OMP_NUM_THREADS=4
// environment: OMP_CANCELLATION=true
// stock: libgomp and libomp are not instrumented
// LLVM's libomp 14 hangs here by itself. A loop that is cancelled, a region that is cancelled, and what comes after.
#include "tests/programs/order.h"
#include <omp.h>

static int found, after[4];

int main(void)
{
    for (int round = 0; round < 10; round++) {
#pragma omp parallel num_threads(4)
        {
#pragma omp for
            for (int i = 0; i < 1000; i++) {
                if (i % 250 == 100) {
#pragma omp atomic write
                    found = i;
#pragma omp cancel for
                }
#pragma omp cancellation point for
            }
            after[omp_get_thread_num()] = round;
#pragma omp barrier
            MUST(after[0] == round && after[3] == round);
        }
#pragma omp parallel num_threads(4)
        {
            if (omp_get_thread_num() == 2) {
#pragma omp cancel parallel
            }
#pragma omp cancellation point parallel
            after[omp_get_thread_num()] = -1;
        }
        MUST(found % 250 == 100);
        for (int i = 0; i < 4; i++)
            after[i] = 0;
    }
    return 0;
}
