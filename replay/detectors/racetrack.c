#include "detect/racetrack.h"
#include "sample/always.h"

#define NAME racetrack
#define SUMMARY "locksets, then the set of concurrent threads; cheap, and misses many"
#define SHARDED 1
#define X rt
#define S always
#include "replay/instance.inc"
