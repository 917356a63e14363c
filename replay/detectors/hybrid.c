#include "detect/hybrid.h"
#include "sample/always.h"

#define NAME hybrid
#define SUMMARY "sets of epochs and locksets behind Eraser's states: forgives initialisation"
#define SHARDED 1
#define X hy
#define S always
#include "replay/instance.inc"
