#include "detect/racetrack.h"

#define NAME racetrack
#define X rt
#define C rt
#define REPEATS 0
#define ORDERS 0
#define CONDITIONS 1
#include "guest/online.inc"
