// expect: none
// runs: 5
// flags: -fopenmp
// environment: OMP_NUM_THREADS=4
// stock: libgomp and libomp are not instrumented
// Tasks with private copies of objects that have constructors.
#include "tests/programs/order.h"
#include <omp.h>
#include <string>
#include <vector>

struct Counted {
    std::vector<int> values;
    std::string name;
    explicit Counted(int n) : values(n, 1), name(64, 'x') {}
    Counted(const Counted &) = default;
    int sum() const
    {
        int total = (int)name.size();
        for (int value : values)
            total += value;
        return total;
    }
};

static int totals[100], loop_totals[100];

int main()
{
    Counted object(36);
#pragma omp parallel num_threads(4)
#pragma omp single
    {
        for (int i = 0; i < 100; i++) {
#pragma omp task firstprivate(object, i)
            {
                object.values[0] = i;
                totals[i] = object.sum();
            }
        }
#pragma omp taskloop firstprivate(object) grainsize(9)
        for (int i = 0; i < 100; i++) {
            object.values[0] = i;
            loop_totals[i] = object.sum();
        }
    }
    for (int i = 0; i < 100; i++)
        MUST(totals[i] == 99 + i && loop_totals[i] == 99 + i);
    return 0;
}
