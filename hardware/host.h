/* The caches of the host, which the simulator runs on: not those that it simulates. */
#ifndef RF_HARDWARE_HOST_H
#define RF_HARDWARE_HOST_H

#include <stddef.h>

#define RF_HOST_LINE ((size_t)64)

/* Brings what is there into the host's caches. A compiler may believe that a function which does nothing else does nothing at all, and
 * leave out its calls; the empty instruction, which is not for it to judge, keeps it from that. */
static inline void rf_host_prefetch(const void *there)
{
    __builtin_prefetch(there);
    __asm__ volatile("");
}

#endif
