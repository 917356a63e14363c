/* guest/ompt.c */
#ifndef RF_GUEST_OMPT_H
#define RF_GUEST_OMPT_H

#include <stdbool.h>
#include <stdint.h>

/* Is this an access of LLVM's OpenMP runtime itself? Asked before a race is reported. */
bool rf_ompt_internal(uint32_t note);

#endif
