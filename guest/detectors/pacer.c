#include "detect/pacer.h"
#include "sample/periods.h"

#define NAME pacer
#define X pc
#define C pc
#define S periods
#define PERIODS 1
#define REPEATS 0
#define ORDERS 1
#define CONDITIONS 0
#include "guest/online.inc"
