#include "detect/acculock.h"
#include "sample/always.h"

#define NAME acculock
#define SUMMARY "epochs, and locksets where only locks order; also finds races of other schedules"
#define SHARDED 1
#define X al
#define WIDE alw
#define S always
#define FETCHES 1
#include "replay/instance.inc"
