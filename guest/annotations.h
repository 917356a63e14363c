/* What the program says about itself: guest/annotations.c, guest/external.c. */
#ifndef RF_GUEST_ANNOTATIONS_H
#define RF_GUEST_ANNOTATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rf_self;

/* Is this a race that the program has called benign? Asked before a report is made. Any thread, any time. */
bool rf_benign(uintptr_t addr, size_t size);
extern bool rf_benign_any; /* whether to ask at all */

/* The thread's accesses are not looked at, and what it does orders nothing, until as many ends as begins. */
void rf_ignore_begin(struct rf_self *self);
void rf_ignore_end(struct rf_self *self);

/* What an object of a library is called in reports; NULL: it has no tag. `header` begins the report. */
const char *rf_external_type(struct rf_self *self, uintptr_t addr, const char **header);

#endif
