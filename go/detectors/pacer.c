#include "detect/pacer.h"

#define NAME pacer
#define X pc
#define C pc
#define REPEATS 0 /* what is left out in one period is not left out in the next */
#define ORDERS 1
#define CONDITIONS 0
#include "guest/online.inc"
