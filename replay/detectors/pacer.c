#include "detect/pacer.h"
#include "sample/periods.h"

#define NAME pacer
#define SUMMARY "fasttrack in sampling periods, finds each race with their rate; precise"
#define SHARDED 1
#define X pc
#define S periods
#include "replay/instance.inc"
