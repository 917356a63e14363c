#include "detect/djit.h"

#define NAME djit
#define X dj
#define C dj
#define REPEATS 1
#define ORDERS 1
#define CONDITIONS 0
#include "guest/online.inc"
