// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// depend(source) comes before depend(sink) of that iteration.
#include "tests/programs/order.h"
#include <omp.h>

static int values[101];

int main(void)
{
#pragma omp parallel for ordered(1) schedule(static, 1) num_threads(4)
    for (int i = 1; i <= 100; i++) {
#pragma omp ordered depend(sink : i - 1)
        values[i] = values[i - 1] + 1;
#pragma omp ordered depend(source)
    }
    MUST(values[100] == 100);
    static int grid[21][21];
#pragma omp parallel for ordered(2) schedule(static, 1) num_threads(4)
    for (int i = 1; i <= 20; i++)
        for (int j = 1; j <= 20; j++) {
#pragma omp ordered depend(sink : i - 1, j) depend(sink : i, j - 1)
            grid[i][j] = grid[i - 1][j] + grid[i][j - 1] + 1;
#pragma omp ordered depend(source)
        }
    MUST(grid[20][20] > 0);
    return 0;
}
