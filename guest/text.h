/* Questions about short texts; libc's functions for them belong to the program. */
#ifndef RF_GUEST_TEXT_H
#define RF_GUEST_TEXT_H

#include <stdbool.h>

static inline bool rf_text_begins(const char *text, const char *with)
{
    while (*with && *text == *with)
        text++, with++;
    return !*with;
}

static inline bool rf_text_same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static inline bool rf_text_has(const char *text, const char *part)
{
    for (; *text; text++)
        if (rf_text_begins(text, part))
            return true;
    return false;
}

#endif
