#include "detect/acculock.h"

#define NAME acculock
#define X al
#define C alw
#define WIDE 1
#define REPEATS 1
#define ORDERS 1
#define CONDITIONS 1
#include "guest/online.inc"
