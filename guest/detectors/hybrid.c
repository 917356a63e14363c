#include "detect/hybrid.h"

#define NAME hybrid
#define X hy
#define C hy
#define REPEATS 0
#define ORDERS 0
#define CONDITIONS 1
#include "guest/online.inc"
