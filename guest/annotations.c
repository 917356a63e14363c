/* Annotations in the program's source: dynamic_annotations.h (Annotate*), and acquire and release of sanitizer/tsan_interface.h.
 *
 * 1. Ignoring needs no new epoch. A hot hook has an effect only through the long way, which looks at ignore_*; what it passes over
 *    is an access that this epoch has recorded already, ignored or not. While a thread ignores, nothing is recorded, so afterwards
 *    the histories hold exactly what was not ignored.
 * 2. The list of benign ranges only grows, at its head; whoever reads it needs no lock. It is read when a race was found.
 * 3. An annotation that says nothing about order or memory does nothing: it is listed, so that programs link.
 */
#include "guest/annotations.h"

#include "guest/atomics.h"
#include "guest/intercept.h"
#include "guest/locks.h"
#include "guest/memory.h"
#include "guest/threads.h"

#define PC ((uintptr_t)__builtin_return_address(0))

struct range {
    uintptr_t from, to;
    struct range *next;
};

static struct range *benign;
bool rf_benign_any;

bool rf_benign(uintptr_t addr, size_t size)
{
    const struct range *range = __atomic_load_n(&benign, __ATOMIC_ACQUIRE);
    while (range && (range->from >= addr + size || addr >= range->to))
        range = range->next;
    return range != NULL;
}

static void add_benign(uintptr_t addr, size_t size)
{
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return;
    for (const struct range *range = __atomic_load_n(&benign, __ATOMIC_ACQUIRE); range; range = range->next)
        if (range->from <= addr && addr + size <= range->to)
            return; /* said before, maybe in a loop */
    rf_busy_begin(self);
    struct range *range = rf_take(sizeof *range);
    rf_benign_any = true;
    *range = (struct range){ addr, addr + (size ? size : 1), __atomic_load_n(&benign, __ATOMIC_RELAXED) };
    while (!__atomic_compare_exchange_n(&benign, &range->next, range, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    rf_busy_end(self);
}

void rf_ignore_begin(struct rf_self *self)
{
    self->ignore_reads++;
    self->ignore_writes++;
    self->ignore_sync++;
}

static void end(uint32_t *ignore)
{
    if (*ignore)
        --*ignore;
}

void rf_ignore_end(struct rf_self *self)
{
    end(&self->ignore_reads);
    end(&self->ignore_writes);
    end(&self->ignore_sync);
}

static void ordered_before(uintptr_t addr)
{
    struct rf_self *self = rf_atomic_self();
    if (self && !self->ignore_sync)
        rf_release(addr, RF_O_USER);
}

static void ordered_after(uintptr_t addr)
{
    struct rf_self *self = rf_atomic_self();
    if (self && !self->ignore_sync)
        rf_acquire(addr, RF_O_USER);
}

/* A function of the program's interface: declared, so that -Wmissing-prototypes has nothing to say, and defined. */
#define ENTRY(type, name, parameters)                                                                                       \
    RF_EXPORT type name parameters;                                                                                         \
    type name parameters

#define WHERE const char *file, int line /* every Annotate* begins so; a stack says more */
#define UNUSED_WHERE ((void)file, (void)line)

ENTRY(void, __tsan_acquire, (void *addr))
{
    ordered_after((uintptr_t)addr);
}

ENTRY(void, __tsan_release, (void *addr))
{
    ordered_before((uintptr_t)addr);
}

#define BEFORE(name)                                                                                                        \
    ENTRY(void, name, (WHERE, uintptr_t addr))                                                                              \
    {                                                                                                                       \
        UNUSED_WHERE;                                                                                                       \
        ordered_before(addr);                                                                                               \
    }
#define AFTER(name)                                                                                                         \
    ENTRY(void, name, (WHERE, uintptr_t addr))                                                                              \
    {                                                                                                                       \
        UNUSED_WHERE;                                                                                                       \
        ordered_after(addr);                                                                                                \
    }

BEFORE(AnnotateHappensBefore)
AFTER(AnnotateHappensAfter)
BEFORE(WTFAnnotateHappensBefore)
AFTER(WTFAnnotateHappensAfter)
BEFORE(AnnotateCondVarSignal)
BEFORE(AnnotateCondVarSignalAll)
BEFORE(AnnotatePCQPut)
AFTER(AnnotatePCQGet)

ENTRY(void, AnnotateCondVarWait, (WHERE, uintptr_t cond, uintptr_t lock))
{
    UNUSED_WHERE;
    (void)lock;
    ordered_after(cond);
}

#define IGNORES(name, field)                                                                                                \
    ENTRY(void, AnnotateIgnore##name##Begin, (WHERE))                                                                       \
    {                                                                                                                       \
        UNUSED_WHERE;                                                                                                       \
        struct rf_self *self = rf_atomic_self();                                                                            \
        if (self)                                                                                                           \
            self->field++;                                                                                                  \
    }                                                                                                                       \
    ENTRY(void, AnnotateIgnore##name##End, (WHERE))                                                                         \
    {                                                                                                                       \
        UNUSED_WHERE;                                                                                                       \
        struct rf_self *self = rf_atomic_self();                                                                            \
        if (self)                                                                                                           \
            end(&self->field);                                                                                              \
    }

IGNORES(Reads, ignore_reads)
IGNORES(Writes, ignore_writes)
IGNORES(Sync, ignore_sync)

/* clang calls them around functions that are not to be looked at, with all that they call. */
ENTRY(void, __tsan_ignore_thread_begin, (void))
{
    struct rf_self *self = rf_atomic_self();
    if (self) {
        self->ignore_reads++;
        self->ignore_writes++;
    }
}

ENTRY(void, __tsan_ignore_thread_end, (void))
{
    struct rf_self *self = rf_atomic_self();
    if (self) {
        end(&self->ignore_reads);
        end(&self->ignore_writes);
    }
}

/* A report shows the annotation itself on top, and below it the function that has it. */
#define LOCK_SCOPE(name) \
    struct rf_scope scope = rf_enter((uintptr_t)&name, PC, __builtin_frame_address(0))

ENTRY(void, AnnotateRWLockCreate, (WHERE, uintptr_t lock))
{
    UNUSED_WHERE;
    LOCK_SCOPE(AnnotateRWLockCreate);
    if (scope.self)
        rf_lock_created(lock, RF_L_RW, scope.pc);
    rf_leave(&scope);
}

ENTRY(void, AnnotateRWLockCreateStatic, (WHERE, uintptr_t lock))
{
    UNUSED_WHERE;
    LOCK_SCOPE(AnnotateRWLockCreateStatic);
    if (scope.self)
        rf_lock_created(lock, RF_L_RW | RF_L_STATIC, scope.pc);
    rf_leave(&scope);
}

ENTRY(void, AnnotateRWLockDestroy, (WHERE, uintptr_t lock))
{
    UNUSED_WHERE;
    LOCK_SCOPE(AnnotateRWLockDestroy);
    if (scope.self)
        rf_lock_destroyed(lock, scope.pc);
    rf_leave(&scope);
}

ENTRY(void, AnnotateRWLockAcquired, (WHERE, uintptr_t lock, uintptr_t is_write))
{
    UNUSED_WHERE;
    LOCK_SCOPE(AnnotateRWLockAcquired);
    if (scope.self)
        rf_lock_acquired(lock, RF_L_RW | RF_L_TOLD | (is_write ? 0 : RF_L_READ), scope.pc);
    rf_leave(&scope);
}

ENTRY(void, AnnotateRWLockReleased, (WHERE, uintptr_t lock, uintptr_t is_write))
{
    UNUSED_WHERE;
    LOCK_SCOPE(AnnotateRWLockReleased);
    if (scope.self)
        rf_lock_released(lock, RF_L_RW | (is_write ? 0 : RF_L_READ), scope.pc);
    rf_leave(&scope);
}

ENTRY(void, AnnotateBenignRaceSized, (WHERE, uintptr_t addr, size_t size, const char *why))
{
    UNUSED_WHERE;
    (void)why;
    add_benign(addr, size);
}

ENTRY(void, WTFAnnotateBenignRaceSized, (WHERE, uintptr_t addr, size_t size, const char *why))
{
    UNUSED_WHERE;
    (void)why;
    add_benign(addr, size);
}

ENTRY(void, AnnotateBenignRace, (WHERE, uintptr_t addr, const char *why))
{
    UNUSED_WHERE;
    (void)why;
    add_benign(addr, 1);
}

/* Tests of detectors say so of a race that is meant. */
ENTRY(void, AnnotateExpectRace, (WHERE, uintptr_t addr, const char *why))
{
    UNUSED_WHERE;
    (void)why;
    add_benign(addr, 1);
}

ENTRY(void, AnnotateNewMemory, (WHERE, uintptr_t addr, size_t size))
{
    UNUSED_WHERE;
    if (rf_atomic_self())
        rf_range_clear(addr, size);
}

ENTRY(void, AnnotateThreadName, (WHERE, const char *name))
{
    UNUSED_WHERE;
    struct rf_self *self = rf_atomic_self();
    if (self && name)
        rf_thread_name(self, name);
}

/* Invariant 3. The arguments are of no interest. */
#define NOTHING(name)                                                                                                       \
    ENTRY(void, name, (void))                                                                                               \
    {                                                                                                                       \
    }

NOTHING(AnnotateFlushState)
NOTHING(AnnotateFlushExpectedRaces)
NOTHING(AnnotateEnableRaceDetection)
NOTHING(AnnotateMemoryIsInitialized)
NOTHING(AnnotateMemoryIsUninitialized)
NOTHING(AnnotateMutexIsNotPHB)
NOTHING(AnnotateMutexIsUsedAsCondVar)
NOTHING(AnnotateNoOp)
NOTHING(AnnotatePCQCreate)
NOTHING(AnnotatePCQDestroy)
NOTHING(AnnotatePublishMemoryRange)
NOTHING(AnnotateUnpublishMemoryRange)
NOTHING(AnnotateTraceMemory)

ENTRY(int, RunningOnValgrind, (void))
{
    return 0;
}

/* How much longer a program should wait in its timeouts. */
ENTRY(double, ValgrindSlowdown, (void))
{
    return 10.0;
}
