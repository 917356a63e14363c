/* Calls of hot hooks, made to reach copies of them nearby: guest/near.c. */
#ifndef RF_GUEST_NEAR_H
#define RF_GUEST_NEAR_H

#include <stdint.h>

/* The list of modules may have changed: at the start, after dlopen() and dlclose(). With one thread all that came are changed. */
void rf_module_loaded(void);

/* The module with this code begins to run: __tsan_init was called from there. It is changed if it is new. */
void rf_module_begins(uintptr_t pc);

#endif
