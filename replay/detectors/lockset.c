#include "detect/lockset.h"
#include "sample/always.h"

#define NAME lockset
#define SUMMARY "the plain lockset discipline; predictive, with many false warnings"
#define SHARDED 1
#define X ls
#define S always
#include "replay/instance.inc"
