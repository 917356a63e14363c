/* Libraries without instrumentation: guest/uninstrumented.c. */
#ifndef RF_GUEST_UNINSTRUMENTED_H
#define RF_GUEST_UNINSTRUMENTED_H

#include <stdbool.h>
#include <stdint.h>

/* The code of a module: where it is mapped. Empty if there is none. */
struct rf_module_code {
    uintptr_t from, to;
};

struct rf_module_code rf_code_with(uintptr_t pc);

static inline bool rf_code_has(const struct rf_module_code *code, uintptr_t pc)
{
    return pc - code->from < code->to - code->from;
}

/* Was this access made by a function of libc that such a library called? */
bool rf_from_uninstrumented(uint32_t note);

#endif
