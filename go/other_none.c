#include "go/other.h"

const struct rf_online *const rf_go_other = 0;
