/* Arrays that grow. Memory that cannot be had ends the program with one line: no caller could go on without it. */
#ifndef RF_TRACE_GROW_H
#define RF_TRACE_GROW_H

#include <stdio.h>
#include <stdlib.h>

static inline void *rf_check_memory(void *memory, size_t bytes)
{
    if (!memory) {
        fprintf(stderr, "redflag: out of memory (%zu bytes)\n", bytes);
        exit(2);
    }
    return memory;
}

static inline void *rf_resize(void *old, size_t bytes)
{
    return rf_check_memory(realloc(old, bytes ? bytes : 1), bytes);
}

/* All bytes zero. */
static inline void *rf_zeroed(size_t count, size_t item)
{
    return rf_check_memory(calloc(count ? count : 1, item), count * item);
}

/* Makes room for at least `need` items. Doubles, so that appending is cheap; the items keep their values. */
static inline void *rf_reserve(void *array, size_t *capacity, size_t need, size_t item)
{
    if (need <= *capacity)
        return array;
    size_t wanted = *capacity * 2 > 16 ? *capacity * 2 : 16;
    if (wanted < need)
        wanted = need;
    *capacity = wanted;
    return rf_resize(array, wanted * item);
}

#endif
