#include "detect/hybrid.h"

#define NAME hybrid
#define X hy
#define C hy
#define REPEATS 0
#define ORDERS 0
#include "guest/online.inc"
