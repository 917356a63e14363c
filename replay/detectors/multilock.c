#include "detect/multilock.h"
#include "sample/always.h"

#define NAME multilock
#define SUMMARY "sets of epochs and locksets; exactly the races that no lock and no message prevents"
#define SHARDED 1
#define X ml
#define S always
#include "replay/instance.inc"
