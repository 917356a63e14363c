#include "detect/generic.h"
#include "sample/always.h"

#define NAME generic
#define SUMMARY "vector clocks in full, checked at every access; sound and precise, and the slowest"
#define SHARDED 1
#define X gen
#define S always
#include "replay/instance.inc"
