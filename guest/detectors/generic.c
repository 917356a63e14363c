#include "detect/generic.h"

#define NAME generic
#define X gen
#define C gen
#define REPEATS 1
#define ORDERS 1
#define CONDITIONS 0
#include "guest/online.inc"
