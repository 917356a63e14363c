/* See fleet/chance.h. */
#include "fleet/chance.h"

#include <math.h>

struct rf_interval rf_chance_share(uint64_t hits, uint64_t runs)
{
    if (!runs)
        return (struct rf_interval){ 0, 0, 1 };
    double n = (double)runs, p = (double)hits / n, z = 1.959963984540054;
    double below = 1 + z * z / n, centre = (p + z * z / (2 * n)) / below;
    double half = z / below * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    return (struct rf_interval){ hits ? centre - half : 0, p, hits < runs ? centre + half : 1 };
}

double rf_chance_found(double occurs, double finds, uint64_t runs)
{
    return 1 - pow(1 - occurs * finds, (double)runs);
}

double rf_chance_unseen(uint64_t runs)
{
    return runs ? 1 - pow(0.05, 1 / (double)runs) : 1;
}
