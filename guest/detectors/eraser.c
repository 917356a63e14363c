#include "detect/eraser.h"

#define NAME eraser
#define X er
#define C er
#define REPEATS 0
#define ORDERS 0
#define CONDITIONS 0
#include "guest/online.inc"
