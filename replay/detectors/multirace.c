#include "detect/multirace.h"
#include "sample/always.h"

#define NAME multirace
#define SUMMARY "DJIT+ where Eraser's lockset is empty; precise, not sound"
#define SHARDED 1
#define X mr
#define S always
#include "replay/instance.inc"
