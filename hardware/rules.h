/* Which rules hold. All of them, except in tests. */
#ifndef RF_HARDWARE_RULES_H
#define RF_HARDWARE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/usual.h"

enum rf_rule {
#define RF_RULE(name, text) RF_RULE_##name,
#include "hardware/rules.def"
#undef RF_RULE
    RF_RULES
};

_Static_assert(RF_RULES <= 64, "broken rules are bits of one word");

/* `broken` has a bit for each rule that does not hold. */
#define RF_HOLDS(broken, rule) (RF_USUAL || __builtin_expect(!((broken) >> RF_RULE_##rule & 1), 1))

#endif
