#include "detect/goldilocks.h"
#include "sample/always.h"

#define NAME goldilocks
#define SUMMARY "happens-before by growing locksets, evaluated lazily; sound and precise"
#define SHARDED 1
#define X gl
#define S always
#define SYNC_MOVES_CELLS 1
#include "replay/instance.inc"
