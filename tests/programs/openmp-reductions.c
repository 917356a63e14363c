// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// Reductions of several kinds, with critical sections or trees.
#include "tests/programs/order.h"
#include <omp.h>

static int values[1000];

int main(void)
{
    for (int i = 0; i < 1000; i++)
        values[i] = i;
    for (int round = 0; round < 10; round++) {
        int sum = 0, most = 0;
        double product = 1;
        int parts[8] = { 0 };
#pragma omp parallel for reduction(+ : sum, parts) reduction(max : most) reduction(* : product) num_threads(4)
        for (int i = 0; i < 1000; i++) {
            sum += values[i];
            most = values[i] > most ? values[i] : most;
            product *= 1;
            parts[i % 8]++;
        }
        MUST(sum == 499500 && most == 999 && product == 1 && parts[3] == 125);
        sum = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
#pragma omp taskgroup task_reduction(+ : sum)
        for (int i = 0; i < 20; i++) {
#pragma omp task in_reduction(+ : sum) firstprivate(i)
            sum += i;
        }
        MUST(sum == 190);
    }
    return 0;
}
