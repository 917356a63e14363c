#include "detect/fasttrack.h"
#include "sample/always.h"

#define NAME fasttrack
#define SUMMARY "epochs in place of vector clocks; sound and precise"
#define SHARDED 1
#define X ft
#define WIDE ftw
#define S always
#include "replay/instance.inc"
