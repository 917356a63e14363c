/* guest/fibers.c */
#ifndef RF_GUEST_FIBERS_H
#define RF_GUEST_FIBERS_H

#include <stdbool.h>

/* The program tells when it switches: frames follow that, not swapcontext(). Set once, by the first fiber. */
extern bool rf_fibers_used;

#endif
