#include "detect/alias.h"
#include "sample/always.h"

#define NAME alias
#define SUMMARY "pairs of sites where different threads met, at least one writing; no order is looked at"
#define SHARDED 0
#define EVERY_RACE 1
#define X al
#define S always
#include "replay/instance.inc"
