/* How sure the runs so far make us. */
#ifndef RF_FLEET_CHANCE_H
#define RF_FLEET_CHANCE_H

#include <stdint.h>

struct rf_interval {
    double low, middle, high;
};

/* The share that `hits` of `runs` stand for, with its 95% interval (Wilson's). No runs: 0 to 1. */
struct rf_interval rf_chance_share(uint64_t hits, uint64_t runs);

/* What a set of runs gives a race that occurs in the share `occurs` of all runs: of a run in which it occurs, it is found with the chance
 * `finds`. The chance that n such runs have found it at least once. */
double rf_chance_found(double occurs, double finds, uint64_t runs);

/* After `runs` runs that found nothing: the largest chance of one run, above which we would have found it by now with 95%. */
double rf_chance_unseen(uint64_t runs);

#endif
