#include "detect/eraser.h"
#include "sample/always.h"

#define NAME eraser
#define SUMMARY "the lockset discipline with Eraser's states; predictive, neither sound nor precise"
#define SHARDED 1
#define X er
#define S always
#include "replay/instance.inc"
