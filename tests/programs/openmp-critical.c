// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// critical, named critical and atomic sections.
#include "tests/programs/order.h"
#include <omp.h>

static long a, b, c;
static struct { long x, y; } pair;

int main(void)
{
#pragma omp parallel num_threads(4)
    for (int i = 0; i < 500; i++) {
#pragma omp critical
        a++;
#pragma omp critical(name)
        {
            b++;
            pair.x++;
            pair.y--;
        }
#pragma omp atomic
        c++;
    }
    MUST(a == 2000 && b == 2000 && c == 2000 && pair.x == -pair.y);
    return 0;
}
