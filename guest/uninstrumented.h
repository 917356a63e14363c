/* Libraries without instrumentation: guest/uninstrumented.c. */
#ifndef RF_GUEST_UNINSTRUMENTED_H
#define RF_GUEST_UNINSTRUMENTED_H

#include <stdbool.h>
#include <stdint.h>

/* Was this access made by a function of libc that such a library called? */
bool rf_from_uninstrumented(uint32_t note);

#endif
