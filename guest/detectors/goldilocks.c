#include "detect/goldilocks.h"

#define NAME goldilocks
#define X gl
#define C gl
#define REPEATS 1
#define ORDERS 1
#define CONDITIONS 0
#include "guest/online.inc"
