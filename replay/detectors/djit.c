#include "detect/djit.h"
#include "sample/always.h"

#define NAME djit
#define SUMMARY "vector clocks, checked once per epoch and kind of access; sound and precise"
#define SHARDED 1
#define X dj
#define S always
#include "replay/instance.inc"
