/* Objects of a virtual machine's own heap: guest/java.c. */
#ifndef RF_GUEST_JAVA_H
#define RF_GUEST_JAVA_H

#include <stdbool.h>
#include <stdint.h>

struct rf_block;

/* The object that holds this address, as guest/heap.h says it of blocks. */
bool rf_java_block(uintptr_t addr, struct rf_block *block);

#endif
