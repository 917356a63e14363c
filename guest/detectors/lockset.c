#include "detect/lockset.h"

#define NAME lockset
#define X ls
#define C ls
#define REPEATS 1
#define ORDERS 0
#define CONDITIONS 0
#include "guest/online.inc"
