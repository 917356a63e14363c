#include "detect/multilock.h"

#define NAME multilock
#define X ml
#define C ml
#define REPEATS 1
#define ORDERS 1
#define CONDITIONS 1
#include "guest/online.inc"
