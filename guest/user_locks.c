/* Locks of the program's own making: __tsan_mutex_* of sanitizer/tsan_interface.h.
 *
 * 1. Between pre_lock and post_lock, pre_unlock and post_unlock, pre_signal and post_signal the thread is inside the lock's own
 *    code: its accesses are not looked at and its atomics order nothing, the annotation says what is ordered. A divert leaves it.
 * 2. An unlock is told in pre_unlock, a lock in post_lock: while the real lock is held.
 * 3. Two facts that guest/locks.h does not know are in the upper half of rf_object.flags: that a lock is NOT_STATIC, and that it is
 *    write-reentrant without having been created.
 */
#include "guest/annotations.h"
#include "guest/atomics.h"
#include "guest/intercept.h"
#include "guest/locks.h"

#define PC ((uintptr_t)__builtin_return_address(0))

/* The flags of the interface. */
enum {
    LINKER_INIT = 1 << 0,
    WRITE_REENTRANT = 1 << 1,
    READ_REENTRANT = 1 << 2,
    READ_LOCK = 1 << 3,
    TRY_LOCK = 1 << 4,
    TRY_LOCK_FAILED = 1 << 5,
    RECURSIVE_LOCK = 1 << 6,
    RECURSIVE_UNLOCK = 1 << 7,
    NOT_STATIC = 1 << 8
};

#define KNOWN_NOT_STATIC (1u << 16)

static unsigned lock_flags(unsigned flags)
{
    unsigned result = RF_L_RW;
    if (flags & LINKER_INIT)
        result |= RF_L_STATIC;
    if (flags & (WRITE_REENTRANT | READ_REENTRANT | RECURSIVE_LOCK | RECURSIVE_UNLOCK))
        result |= RF_L_RECURSIVE;
    if (flags & READ_LOCK)
        result |= RF_L_READ;
    if (flags & TRY_LOCK)
        result |= RF_L_TRY;
    return result;
}

static void remember_not_static(struct rf_self *self, uintptr_t addr, unsigned flags)
{
    if (!(flags & NOT_STATIC))
        return;
    struct rf_object *object = rf_object_lock(self, addr, RF_O_MUTEX, true);
    object->flags |= KNOWN_NOT_STATIC;
    rf_object_unlock(self, object);
}

RF_EXPORT void __tsan_mutex_create(void *addr, unsigned flags);
RF_EXPORT void __tsan_mutex_destroy(void *addr, unsigned flags);
RF_EXPORT void __tsan_mutex_pre_lock(void *addr, unsigned flags);
RF_EXPORT void __tsan_mutex_post_lock(void *addr, unsigned flags, int levels);
RF_EXPORT int __tsan_mutex_pre_unlock(void *addr, unsigned flags);
RF_EXPORT void __tsan_mutex_post_unlock(void *addr, unsigned flags);
RF_EXPORT void __tsan_mutex_pre_signal(void *addr, unsigned flags);
RF_EXPORT void __tsan_mutex_post_signal(void *addr, unsigned flags);
RF_EXPORT void __tsan_mutex_pre_divert(void *addr, unsigned flags);
RF_EXPORT void __tsan_mutex_post_divert(void *addr, unsigned flags);

void __tsan_mutex_create(void *addr, unsigned flags)
{
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return;
    rf_lock_created((uintptr_t)addr, lock_flags(flags), PC);
    remember_not_static(self, (uintptr_t)addr, flags);
}

void __tsan_mutex_destroy(void *addr, unsigned flags)
{
    struct rf_self *self = rf_atomic_self();
    if (!self || (flags & LINKER_INIT))
        return;
    struct rf_object *object = rf_object_lock(self, (uintptr_t)addr, RF_O_MUTEX, false);
    if (!object)
        return;
    bool ignored = (object->flags & RF_L_STATIC) || ((flags & NOT_STATIC) && !(object->flags & KNOWN_NOT_STATIC));
    rf_object_unlock(self, object);
    if (!ignored)
        rf_lock_destroyed((uintptr_t)addr, PC);
}

void __tsan_mutex_pre_lock(void *addr, unsigned flags)
{
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return;
    if (!(flags & TRY_LOCK))
        rf_lock_wanted((uintptr_t)addr, lock_flags(flags), PC);
    rf_ignore_begin(self);
}

void __tsan_mutex_post_lock(void *addr, unsigned flags, int levels)
{
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return;
    rf_ignore_end(self);
    if (flags & TRY_LOCK_FAILED)
        return;
    remember_not_static(self, (uintptr_t)addr, flags);
    for (int i = flags & RECURSIVE_LOCK ? levels : 1; i > 0; i--)
        rf_lock_acquired((uintptr_t)addr, lock_flags(flags), PC);
}

/* How often the thread holds it. */
static uint32_t levels_held(struct rf_self *self, uintptr_t addr)
{
    struct rf_object *object = rf_object_lock(self, addr, RF_O_MUTEX, false);
    if (!object)
        return 0;
    uint32_t levels = object->owner == self->number + 1 ? object->depth : 0;
    rf_object_unlock(self, object);
    return levels;
}

int __tsan_mutex_pre_unlock(void *addr, unsigned flags)
{
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return 0;
    uint32_t levels = 1;
    if ((flags & RECURSIVE_UNLOCK) && !(flags & READ_LOCK)) {
        levels = levels_held(self, (uintptr_t)addr);
        levels = levels ? levels : 1; /* not held at all: guest/locks.c says so */
    }
    for (uint32_t i = 0; i < levels; i++)
        rf_lock_released((uintptr_t)addr, lock_flags(flags), PC);
    rf_ignore_begin(self);
    return (int)levels;
}

static void enter(void)
{
    struct rf_self *self = rf_atomic_self();
    if (self)
        rf_ignore_begin(self);
}

static void leave(void)
{
    struct rf_self *self = rf_atomic_self();
    if (self)
        rf_ignore_end(self);
}

void __tsan_mutex_post_unlock(void *addr, unsigned flags)
{
    (void)addr, (void)flags;
    leave();
}

void __tsan_mutex_pre_signal(void *addr, unsigned flags)
{
    (void)addr, (void)flags;
    enter();
}

void __tsan_mutex_post_signal(void *addr, unsigned flags)
{
    (void)addr, (void)flags;
    leave();
}

void __tsan_mutex_pre_divert(void *addr, unsigned flags)
{
    (void)addr, (void)flags;
    leave();
}

void __tsan_mutex_post_divert(void *addr, unsigned flags)
{
    (void)addr, (void)flags;
    enter();
}
