// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// Locks of omp.h, nested ones, and tries.
#include "tests/programs/order.h"
#include <omp.h>

static omp_lock_t lock;
static omp_nest_lock_t nested;
static long a, b, c;

int main(void)
{
    omp_init_lock(&lock);
    omp_init_nest_lock(&nested);
#pragma omp parallel num_threads(4)
    for (int i = 0; i < 300; i++) {
        omp_set_lock(&lock);
        a++;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nested);
        omp_set_nest_lock(&nested);
        b++;
        omp_unset_nest_lock(&nested);
        b++;
        omp_unset_nest_lock(&nested);
        if (omp_test_lock(&lock)) {
            c++;
            omp_unset_lock(&lock);
        }
    }
    MUST(a == 1200 && b == 2400 && c <= 1200);
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nested);
    return 0;
}
