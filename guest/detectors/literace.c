/* LiteRace is FastTrack, here in the form of detect/, behind a sampler that each thread has for itself: guest/online.c. */
#include "detect/fasttrack.h"

#define NAME literace
#define X ft
#define C ftw
#define WIDE 1
#define REPEATS 1
#define ORDERS 1
#define CONDITIONS 0
#include "guest/online.inc"
