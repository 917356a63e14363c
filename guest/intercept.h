/* How a function of libc is intercepted.
 *
 *   RF_INTERCEPT(void *, memcpy, (void *to, const void *from, size_t size))
 *   {
 *       struct rf_scope scope = RF_ENTER(memcpy);
 *       if (scope.self)
 *           rf_range_read(from, size, scope.pc);
 *       ...
 *       void *result = RF_REAL(memcpy)(to, from, size);
 *       rf_leave(&scope);
 *       return result;
 *   }
 *
 * 1. The C function is rf_icpt_NAME; the symbol NAME is an alias of it, so the guest's own calls of memcpy and its like, which the
 *    build renames (rf_internal_memcpy, ...), never come here. Inside the guest call RF_REAL(f) or a raw system call.
 * 2. scope.self is NULL if nothing is to be checked: before the start, inside the guest, while it ends. The real function is
 *    called all the same.
 * 3. While the scope lasts, the caller's frame is on the stack of frames and scope.pc names the interceptor: a report shows
 *    "#0 memcpy", "#1 the caller". Nothing in between may be skipped by errno: interceptors leave errno as the real function did.
 */
#ifndef RF_GUEST_INTERCEPT_H
#define RF_GUEST_INTERCEPT_H

#include "guest/self.h"

/* The function that would have been called without us; found once. guest/start.c */
void *rf_find_real(const char *name);
void *rf_find_real_version(const char *name, const char *version);

/* All of them that there are: before the loader holds a lock that a look for one needs. */
struct rf_real_place {
    void **place;
    const char *name, *version; /* NULL: the one that dlsym() finds */
};
void rf_find_all_real(void);

/* guest/escape.h */
extern uint16_t **rf_escape_leaves RF_OURS;
void rf_escape_flush(struct rf_self *self);

struct rf_scope {
    struct rf_self *self;
    uintptr_t pc;
};

extern int rf_started; /* 1: between start and end. Written once each; a stale value does no harm */

static inline __attribute__((always_inline)) struct rf_scope rf_enter(uintptr_t pc, uintptr_t caller, void *sp)
{
    if (__builtin_expect(!rf_started, 0))
        return (struct rf_scope){ NULL, pc };
    struct rf_self *self = rf_self();
    if (!self || self->inside)
        return (struct rf_scope){ NULL, pc };
    if (__builtin_expect(rf_escape_leaves != NULL, 0))
        rf_escape_flush(self); /* before what it has stored to is unmapped, or sent away */
    struct rf_frame *frame = rf_hot.top++;
    frame->pc = caller;
    frame->node = 0;
    frame->sp = (uint32_t)(uintptr_t)sp;
    return (struct rf_scope){ self, pc };
}

static inline void rf_leave(const struct rf_scope *scope)
{
    if (scope->self)
        rf_hot.top--;
}

#define RF_ENTER(name) \
    rf_enter((uintptr_t)&rf_icpt_##name, (uintptr_t)__builtin_return_address(0), __builtin_frame_address(0))

/* Two threads may look it up at once: they find the same. */
static inline __attribute__((always_inline)) void *rf_real(void **place, const char *name)
{
    void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (__builtin_expect(!found, 0))
        __atomic_store_n(place, found = rf_find_real(name), __ATOMIC_RELAXED);
    return found;
}

#define RF_REAL(name) ((rf_fn_##name *)rf_real(&rf_real_##name, #name))

#define RF_EXPORT __attribute__((visibility("default"), used))

/* Programs with a function of that name of their own call ours by this one. */
#define RF_AGAIN(name) \
    ".globl __interceptor_" name "\n.type __interceptor_" name ", @function\n.set __interceptor_" name ", rf_icpt_" name "\n"

#ifndef RF_REAL_VERSION /* a file may say otherwise of its functions */
#define RF_REAL_VERSION NULL
#endif

/* Some functions are declared before they are defined: both have one. */
#define RF_REAL_PLACE(name, number) RF_REAL_PLACE_NUMBER(name, number)
#define RF_REAL_PLACE_NUMBER(name, number) \
    static const struct rf_real_place rf_place_##number __attribute__((section("rf_reals"), aligned(8), used)) = {                    \
        &rf_real_##name, #name, RF_REAL_VERSION                                                                                      \
    }

#define RF_INTERCEPT(type, name, parameters)                                                              \
    typedef type rf_fn_##name parameters;                                                                 \
    static void *rf_real_##name __attribute__((unused));                                                   \
    RF_REAL_PLACE(name, __COUNTER__);                                                                     \
    static rf_fn_##name rf_icpt_##name __attribute__((used));                                             \
    __asm__(".globl " #name "\n.type " #name ", @function\n.set " #name ", rf_icpt_" #name "\n" RF_AGAIN(#name)); \
    static type rf_icpt_##name parameters

#endif
