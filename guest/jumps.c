/* longjmp() and user contexts: the stack of frames follows the stack pointer.
 *
 * 1. A frame knows the low half of the stack pointer at its entry hook, which is one return address below the function's own; frames
 *    of interceptors lie lower still below their callers. So a frame belongs to who is left exactly if it is below the target by more
 *    than a return address. Stacks are far smaller than 2 GB, so halves compare by their difference.
 * 2. setjmp() is not intercepted: glibc's jmp_buf tells its stack pointer.
 * 3. Frames below a signal handler's are not compared with the handler's: it may run on another stack. guest/signals.c knows where
 *    they begin.
 * 4. Each context of swapcontext() has its own frames: those of the one that stops are put aside until it goes on, by whatever thread
 *    does so. A context that never goes on leaves its frames behind: 16 bytes for each function in it. To the detector the contexts
 *    of one thread are one thread; the interface of fibers tells them apart, and then frames are its business.
 */
#include "guest/jumps.h"

#include <setjmp.h>
#include <ucontext.h>

#include "guest/fibers.h"
#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/refusal.h"
#include "guest/signals.h"
#include "guest/threads.h"

#define RETURN_ADDRESS 8u

void rf_frames_heal(void *sp)
{
    struct rf_self *self = rf_hot.self;
    if (!self)
        return;
    struct rf_frame *bottom = rf_handling ? rf_handling->top + 1 : self->frames; /* invariant 3 */
    uint32_t lowest = (uint32_t)(uintptr_t)sp - RETURN_ADDRESS;
    struct rf_frame *top = rf_hot.top;
    while (top > bottom && (int32_t)(top[-1].sp - lowest) < 0)
        top--;
    rf_hot.top = top;
}

/* glibc keeps the stack pointer as the seventh word, rotated and mixed with the thread's guard. */
uintptr_t rf_jump_target(const struct __jmp_buf_tag *env)
{
    uintptr_t mangled = (uintptr_t)env->__jmpbuf[6], guard;
    __asm__("mov %%fs:0x30, %0" : "=r"(guard));
    return (mangled >> 17 | mangled << 47) ^ guard;
}

static void leave_to(uintptr_t sp)
{
    if (!rf_started || !rf_hot.self)
        return;
    rf_signals_left(sp);
    rf_question_left(rf_hot.self, sp);
    rf_frames_heal((void *)sp);
}

void rf_jump_leaves(const struct __jmp_buf_tag *place)
{
    leave_to(rf_jump_target(place));
}

#define JUMPS(name)                                                         \
    RF_INTERCEPT(void, name, (struct __jmp_buf_tag *env, int value))        \
    {                                                                       \
        leave_to(rf_jump_target(env));                                      \
        if (rf_hot.self)                                                    \
            rf_tries_left(rf_hot.self, rf_jump_target(env));                \
        RF_REAL(name)(env, value);                                          \
        __builtin_unreachable();                                            \
    }
JUMPS(longjmp)
JUMPS(_longjmp)
JUMPS(siglongjmp)
JUMPS(__longjmp_chk)

RF_INTERCEPT(int, setcontext, (const ucontext_t *to))
{
    leave_to((uintptr_t)to->uc_mcontext.gregs[REG_RSP]);
    return RF_REAL(setcontext)(to);
}

RF_INTERCEPT(int, swapcontext, (ucontext_t *from, const ucontext_t *to))
{
    struct rf_self *self = rf_started ? rf_hot.self : NULL;
    if (!self || self->inside || rf_fibers_used)
        return RF_REAL(swapcontext)(from, to);
    size_t count = rf_hot.top > self->frames ? (size_t)(rf_hot.top - self->frames) : 0, size = count * sizeof(struct rf_frame);
    bool mine = rf_busy_enter(self); /* for the lock of guest/memory.c */
    struct rf_frame *aside = size ? rf_take(size) : NULL;
    rf_busy_leave(self, mine);
    for (size_t i = 0; i < count; i++)
        aside[i] = self->frames[i];
    rf_hot.top = self->frames;
    void *refusal = self->refusal; /* its blocks lie on the stack that is left */
    self->refusal = NULL;
    int result = RF_REAL(swapcontext)(from, to);
    self = rf_hot.self; /* it may be another thread that goes on here */
    bool busy = rf_busy_enter(self);
    if (self) {
        rf_refusal_thread_end(self);
        self->refusal = refusal;
    }
    rf_busy_leave(self, busy);
    if (self) {
        for (size_t i = 0; i < count; i++) {
            self->frames[i] = aside[i];
            self->frames[i].node = 0;
        }
        rf_hot.top = self->frames + count;
    }
    mine = rf_busy_enter(self);
    if (aside)
        rf_give(aside, size);
    rf_busy_leave(self, mine);
    return result;
}
