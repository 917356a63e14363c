/* __tsan_java_*: a virtual machine tells of its own heap, in which objects are made, moved and forgotten without malloc, and of the locks
 * and volatile variables of its programs.
 *
 * 1. The machine stops its threads before it moves or frees: nobody else touches that memory, or synchronises on it, meanwhile.
 * 2. Objects begin at multiples of 8. Each such place of the heap has a record, in pages that come when they are touched; a record
 *    without a size is no object. Records are written by the thread that makes the object, and under 1.
 * 3. What is moved has no history at its new place; locks and volatile variables move along with it.
 */
#include "guest/java.h"

#include "guest/access.h"
#include "guest/heap.h"
#include "guest/intercept.h"
#include "guest/locks.h"
#include "guest/memory.h"
#include "guest/system.h"
#include "guest/threads.h"

#define PC ((uintptr_t)__builtin_return_address(0))
#define STEP 8u

struct place {
    uint64_t size;
    uint32_t note, thread;
};

/* Written once, before the heap is used. */
static uintptr_t heap_begin, heap_end;
static struct place *places;

static struct place *place_of(uintptr_t addr)
{
    return &places[(addr - heap_begin) / STEP];
}

static bool in_heap(uintptr_t addr, size_t size)
{
    return places && addr >= heap_begin && addr <= heap_end && size <= heap_end - addr;
}

static void must_be_in_heap(const char *function, uintptr_t addr, size_t size)
{
    if (!in_heap(addr, size) || addr % STEP)
        rf_die("%s: 0x%zx, %zu bytes, is not in the heap of __tsan_java_init", function, (size_t)addr, size);
}

bool rf_java_block(uintptr_t addr, struct rf_block *block)
{
    if (!in_heap(addr, 1))
        return false;
    for (uintptr_t at = addr / STEP * STEP; at >= heap_begin; at -= STEP) {
        const struct place *place = place_of(at);
        if (!place->size)
            continue;
        *block = (struct rf_block){ at, place->size, place->note, place->thread, false, place->size };
        return addr - at < place->size;
    }
    return false;
}

RF_EXPORT void __tsan_java_preinit(const char *library);
RF_EXPORT void __tsan_java_init(uintptr_t begin, size_t size);
RF_EXPORT int __tsan_java_fini(void);
RF_EXPORT void __tsan_java_alloc(uintptr_t addr, size_t size);
RF_EXPORT void __tsan_java_free(uintptr_t addr, size_t size);
RF_EXPORT size_t __tsan_java_find(uintptr_t *from, uintptr_t to);
RF_EXPORT void __tsan_java_move(uintptr_t from, uintptr_t to, size_t size);
RF_EXPORT void __tsan_java_finalize(void);
RF_EXPORT void __tsan_java_mutex_lock(uintptr_t addr);
RF_EXPORT void __tsan_java_mutex_unlock(uintptr_t addr);
RF_EXPORT void __tsan_java_mutex_read_lock(uintptr_t addr);
RF_EXPORT void __tsan_java_mutex_read_unlock(uintptr_t addr);
RF_EXPORT void __tsan_java_mutex_lock_rec(uintptr_t addr, int times);
RF_EXPORT int __tsan_java_mutex_unlock_rec(uintptr_t addr);
RF_EXPORT int __tsan_java_acquire(uintptr_t addr);
RF_EXPORT int __tsan_java_release(uintptr_t addr);
RF_EXPORT int __tsan_java_release_store(uintptr_t addr);

/* The thread for which there is something to do. */
static struct rf_self *here(void)
{
    struct rf_self *self = rf_started ? rf_self() : NULL;
    return self && !self->inside ? self : NULL;
}

void __tsan_java_preinit(const char *library)
{
    (void)library; /* the machine's own library needs no special treatment */
}

void __tsan_java_init(uintptr_t begin, size_t size)
{
    if (places)
        rf_die("__tsan_java_init was called twice");
    if (begin % STEP || size % STEP)
        rf_die("__tsan_java_init: a heap begins and ends at a multiple of %u", STEP);
    places = rf_reserve(size / STEP * sizeof *places);
    if (!places)
        rf_die("__tsan_java_init: no addresses for the records of a heap of %zu bytes", size);
    heap_begin = begin;
    heap_end = begin + size;
}

/* The status that the program is to end with as far as the guest has a say: what was reported shows at its end. */
int __tsan_java_fini(void)
{
    return 0;
}

void __tsan_java_alloc(uintptr_t addr, size_t size)
{
    struct rf_self *self = here();
    must_be_in_heap("__tsan_java_alloc", addr, size);
    if (!self)
        return;
    rf_objects_forget(addr, size);
    struct place *place = place_of(addr);
    place->note = rf_range_fresh(addr, size, size, PC);
    place->thread = self->number;
    place->size = size;
}

static void forget(uintptr_t addr, size_t size)
{
    rf_objects_forget(addr, size);
    rf_range_clear(addr, size);
}

void __tsan_java_free(uintptr_t addr, size_t size)
{
    must_be_in_heap("__tsan_java_free", addr, size);
    if (!size || !here())
        return;
    for (size_t at = 0; at < size; at += STEP)
        place_of(addr + at)->size = 0;
    forget(addr, size);
}

size_t __tsan_java_find(uintptr_t *from, uintptr_t to)
{
    if (!in_heap(*from, 0))
        return 0;
    for (uintptr_t at = (*from + STEP - 1) / STEP * STEP; at < to && at < heap_end; at += STEP) {
        size_t size = place_of(at)->size;
        if (size) {
            *from = at;
            return size;
        }
    }
    return 0;
}

void __tsan_java_move(uintptr_t from, uintptr_t to, size_t size)
{
    must_be_in_heap("__tsan_java_move", from, size);
    must_be_in_heap("__tsan_java_move", to, size);
    struct rf_self *self = here();
    if (!self || !size || from == to)
        return;
    rf_objects_move(from, to, size);
    for (size_t i = 0; i < size; i += STEP) {
        size_t at = to > from ? (size - 1) / STEP * STEP - i : i;
        *place_of(to + at) = *place_of(from + at);
        place_of(from + at)->size = 0;
    }
    rf_range_clear(from, size);
    rf_range_clear(to, size);
}

/* Finalizers come after everything that was done before they could be called. */
void __tsan_java_finalize(void)
{
    struct rf_self *self = here();
    if (self)
        rf_thread_learn_past(self);
}

#define LOCK (RF_L_RW | RF_L_RECURSIVE | RF_L_STATIC)

void __tsan_java_mutex_lock(uintptr_t addr)
{
    if (here())
        rf_lock_acquired(addr, LOCK, PC);
}

void __tsan_java_mutex_unlock(uintptr_t addr)
{
    if (here())
        rf_lock_released(addr, LOCK, PC);
}

void __tsan_java_mutex_read_lock(uintptr_t addr)
{
    if (here())
        rf_lock_acquired(addr, LOCK | RF_L_READ, PC);
}

void __tsan_java_mutex_read_unlock(uintptr_t addr)
{
    if (here())
        rf_lock_released(addr, LOCK | RF_L_READ, PC);
}

/* Object.wait() gives the lock back however often it is held, and takes it again as often. */
void __tsan_java_mutex_lock_rec(uintptr_t addr, int times)
{
    if (!here())
        return;
    for (int i = 0; i < times; i++)
        rf_lock_acquired(addr, LOCK, PC);
}

int __tsan_java_mutex_unlock_rec(uintptr_t addr)
{
    struct rf_self *self = here();
    struct rf_object *object = self ? rf_object_lock(self, addr, RF_O_RWLOCK, false) : NULL;
    if (!object)
        return 0;
    uint32_t times = object->owner == self->number + 1 ? object->depth : 0;
    rf_object_unlock(self, object);
    for (uint32_t i = 0; i < times; i++)
        rf_lock_released(addr, LOCK, PC);
    return (int)times;
}

int __tsan_java_acquire(uintptr_t addr)
{
    if (here())
        rf_acquire(addr, RF_O_USER);
    return 1;
}

int __tsan_java_release(uintptr_t addr)
{
    if (here())
        rf_release(addr, RF_O_USER);
    return 1;
}

int __tsan_java_release_store(uintptr_t addr)
{
    struct rf_self *self = here();
    if (!self || self->ignore_sync)
        return 1;
    struct rf_object *object = rf_object_lock(self, addr, RF_O_USER, true);
    rf_object_release_store(self, object);
    rf_object_unlock(self, object);
    return 1;
}
