/* Calls of hot hooks, made to reach copies of them nearby: guest/near.c. */
#ifndef RF_GUEST_NEAR_H
#define RF_GUEST_NEAR_H

/* The list of modules may have changed: at the start, after dlopen(). Changes those that are new if there is only one thread. */
void rf_module_loaded(void);

/* __tsan_init() was called again: a module is about to begin. Changes those that are new, whatever other threads do. */
void rf_module_begins(void);

#endif
