// expect: none
// runs: 5
// flags: -fopenmp
// libs: -latomic
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// omp atomic read, write, update and capture.
#include "tests/programs/order.h"
#include <omp.h>

static int x, y;
static long double wide;

int main(void)
{
#pragma omp parallel num_threads(4)
    for (int i = 0; i < 300; i++) {
        int seen;
#pragma omp atomic
        x += 2;
#pragma omp atomic capture
        seen = y++;
#pragma omp atomic read
        seen = x;
#pragma omp atomic
        wide += 1;
        MUST(seen >= 2);
    }
    MUST(x == 2400 && y == 1200 && wide == 1200);
    return 0;
}
