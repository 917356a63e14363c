/* Its findings are pairs of sites, told at the end: guest/online_pairs.h. */
#include "detect/alias.h"

#define NAME alias
#define X al
#define C al
#define REPEATS 0
#define ORDERS 1
#define CONDITIONS 0
#define PAIRS 1
#include "guest/online.inc"
