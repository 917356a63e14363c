#include "detect/hybrid.h"
#include "sample/always.h"

#define NAME hybrid
#define SUMMARY "the same, behind Eraser's state machine: forgives initialisation"
#define SHARDED 1
#define X hy
#define S always
#include "replay/instance.inc"
