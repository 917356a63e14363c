#include "sample/literace.h"
#include "detect/fasttrack.h"

#define NAME literace
#define SUMMARY "fasttrack that looks at code the less, the more often it runs; precise"
#define SHARDED 0
#define X ft
#define WIDE ftw
#define S literace
#include "replay/instance.inc"
