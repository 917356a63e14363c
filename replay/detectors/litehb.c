#include "detect/litehb.h"
#include "sample/always.h"

#define NAME litehb
#define SUMMARY "the races of one pair of sites; tracks happens-before only while they can happen"
#define SHARDED 1
#define X lh
#define S always
#include "replay/instance.inc"
