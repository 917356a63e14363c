/* Writing to code, and making code near a module: for guest/near.c and what changes calls otherwise.
 *
 * 1. No page is ever writable and executable: code is changed through /proc/self/mem, and new code is written before it becomes
 *    executable. Without /proc, the code's pages are writable for a moment in which, as there is only one thread, nobody runs them.
 * 2. Used by one thread at a time: who holds the lock of guest/modules.c.
 */
#ifndef RF_GUEST_PATCH_H
#define RF_GUEST_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes are gathered. Places come in ascending order until rf_patch_write(). */
void rf_patch_add(const uint8_t *at, const uint8_t *bytes, size_t length);
/* False if some change since the last time could not be made. */
bool rf_patch_write(void);
void rf_patch_end(void); /* nothing more for now */

/* The same call or jump, of `length` bytes from its opcode on, to `target`. `to` has room for 6 bytes. */
void rf_patch_form(const uint8_t *at, size_t length, bool jump, uintptr_t target, uint8_t *to);
/* The call as nothing, the jump as a return. */
void rf_patch_nothing(size_t length, bool jump, uint8_t *to);

/* New code, a multiple of 4096 bytes, that all code from low to high can call; `fill` writes it. 0 if there is no room. */
uintptr_t rf_patch_make(uintptr_t low, uintptr_t high, size_t size, void (*fill)(uint8_t *to, void *context), void *context);
bool rf_patch_reaches(uintptr_t at, size_t size, uintptr_t low, uintptr_t high);

#endif
