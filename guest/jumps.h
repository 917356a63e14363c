/* Frames that are left without an exit hook. */
#ifndef RF_GUEST_JUMPS_H
#define RF_GUEST_JUMPS_H

#include <stdint.h>

/* The function whose stack pointer is `sp` (as it is between calls) goes on: frames below it were left by longjmp() or an exception
 * through code without clean-ups, and are popped. Cheap if there are none. */
void rf_frames_heal(void *sp);

/* The guest itself is about to jump there. */
struct __jmp_buf_tag;
void rf_jump_leaves(const struct __jmp_buf_tag *place);
uintptr_t rf_jump_target(const struct __jmp_buf_tag *place); /* its stack pointer */

#endif
