#include "detect/litehb.h"

#define NAME litehb
#define X lh
#define C lh
#define REPEATS 0
#define ORDERS 1
#define CONDITIONS 0
#define WANTS_SITE 1
#include "guest/online.inc"
