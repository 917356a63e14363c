/* A race: two accesses to one variable, as a detector found them, and lists of them. */
#ifndef RF_CORE_RACE_H
#define RF_CORE_RACE_H

#include "core/event.h"

#define RF_UNKNOWN UINT32_MAX

struct rf_race_access {
    uint64_t number; /* 0: not known */
    uint32_t thread; /* RF_UNKNOWN: not known */
    uint32_t site;
    enum rf_op op;
    uint64_t *locks; /* keys of the locks held, NULL if the detector does not keep them */
    uint32_t lock_count;
};

struct rf_race {
    uint64_t addr;
    uint32_t size;
    bool predictive; /* not a race in this execution, as far as the detector knows; in another it may be */
    uint8_t number_bits; /* of first.number, how many lower bits the detector knew; 0: 32 */
    struct rf_race_access first, second;
};

struct rf_races {
    struct rf_race *list;
    size_t count, cap;
};

#endif
