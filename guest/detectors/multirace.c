#include "detect/multirace.h"

#define NAME multirace
#define X mr
#define C mr
#define REPEATS 0
#define ORDERS 0
#define CONDITIONS 0
#include "guest/online.inc"
