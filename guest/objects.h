/* Synchronisation objects by address: their clocks, and who may touch them.
 *
 * 1. An object is found by its address (any byte address, so two atomics in one granule are two objects) in constant time, without a
 *    lock that other addresses share, and made on first use. It is forgotten with its memory.
 * 2. Its fields are read and written only between rf_object_lock() and rf_object_unlock(), which also make the thread busy
 *    (guest/self.h). The lock is a spin lock that yields; nothing that blocks is done under it. One thread may do without it: the one
 *    in `quick`, while it is busy and holds the mutex that the object is of. Other threads that lock or unlock that mutex do so before
 *    or after. For any other use of the object rf_object_lock() takes that right away for ever, with the world stopped.
 * 3. The rules of happens-before are those of core/order.h, applied to `sync`.
 * 4. The array of `sync`'s clock `readers` comes from rf_clock_room() (guest/threads.h), that of `released` from rf_object_room(), and
 *    from no other place: whoever lets one grow makes room first. That of `released` is `few` as long as that is enough.
 * 5. The memory of an object is used again only for objects: who still has a pointer to one that was forgotten finds, under its lock,
 *    another address in it, and looks again.
 */
#ifndef RF_GUEST_OBJECTS_H
#define RF_GUEST_OBJECTS_H

#include "guest/planes.h"
#include "guest/self.h"

enum rf_object_kind { RF_O_NONE, RF_O_MUTEX, RF_O_RWLOCK, RF_O_SPIN, RF_O_COND, RF_O_BARRIER, RF_O_SEMAPHORE, RF_O_ONCE, RF_O_ATOMIC, RF_O_USER, RF_O_FD };

#define RF_OBJECT_FEW 8u /* times of `released` that lie in the object itself */

/* What every operation touches comes first, in the first line of the cache, then what locks do. */
struct rf_object {
    uintptr_t addr;        /* 0: forgotten. Written under the page's lock and the object's; read by rf_object_lock() without */
    uint32_t lock;         /* the spin lock */
    uint32_t kind;         /* enum rf_object_kind: what it was used as first */
    struct rf_sync sync;   /* core/order.h: released, readers, last */
    uint32_t last_store;   /* guest/atomics.c: number + 1 of the thread whose store heads the release sequence */
    uint32_t extra;        /* semaphores: tokens; barriers: the round; once: state */
    uint32_t few[RF_OBJECT_FEW]; /* invariant 4 */
    uint32_t owner, depth;       /* a lock: number + 1 of the thread that holds it exclusively, and how often; 0: nobody */
    uint32_t quick, alone; /* guest/locks.c, the quick way: for which thread (number + 1), and the set of this lock alone */
#define RF_NEVER_QUICK UINT32_MAX
    uint32_t lock_number;  /* guest/locks.h: its number as a lock, 0: none yet */
    uint32_t flags;        /* guest/locks.h */
    uint32_t toucher;      /* a lock: number + 1 of the thread whose use of it was looked at as an access last */
    uint32_t reading;      /* a lock: how often it is held for reading */
    uint32_t created;      /* note of its initialisation, 0: not seen */
    uint32_t owner_note;   /* where it was locked */
    struct rf_object *next; /* of those in the same part of the page; written under the page's lock */
    uint64_t key, own_key; /* guest/tap.h: under which it is told; 0: not told yet. guest/atomics.c: that of the own part */
    uint64_t released_version, readers_version; /* guest/versions.h; of a lock's readers */
    void *detail;          /* barriers: the round (guest/barrier.c); semaphores: the posts (guest/semaphore.c) */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct rf_object, few) == 64 && sizeof(struct rf_object) == 192, "lines of the cache");

/* Where the objects of a page are (guest/objects.c, 1 and 3). */
#define RF_OBJECT_PARTS 64
struct rf_directory {
    struct rf_object *parts[RF_OBJECT_PARTS];
    uint32_t count;
};

/* The upper bits of a page's cell: which of its granules, modulo 16, may have objects. */
#define RF_CELL_BITS 48
#define RF_CELL_POINTER ((UINT64_C(1) << RF_CELL_BITS) - 1)

static inline uint64_t rf_cell_bit(uintptr_t addr)
{
    return UINT64_C(1) << (RF_CELL_BITS + addr / RF_GRANULE % 16);
}

/* There is none: certain, at the instant of the look. */
static inline bool rf_object_is_nowhere(uintptr_t addr)
{
    return !(__atomic_load_n(rf_object_page(addr), __ATOMIC_ACQUIRE) & rf_cell_bit(addr));
}

/* The object, if it is found: without a lock, so it may just have been forgotten, and NULL may be a mistake. */
static inline struct rf_object *rf_object_find(uintptr_t addr)
{
    uint64_t cell = __atomic_load_n(rf_object_page(addr), __ATOMIC_ACQUIRE);
    if (!(cell & rf_cell_bit(addr)))
        return NULL;
    cell &= RF_CELL_POINTER;
    struct rf_object *object = (struct rf_object *)cell;
    if (cell & 1)
        object = __atomic_load_n(&((struct rf_directory *)(cell - 1))->parts[addr / 64 % RF_OBJECT_PARTS], __ATOMIC_ACQUIRE);
    while (object && __atomic_load_n(&object->addr, __ATOMIC_RELAXED) != addr)
        object = __atomic_load_n(&object->next, __ATOMIC_ACQUIRE);
    return object;
}

/* Locked. NULL (and nothing is locked) only if !make and there is none. */
struct rf_object *rf_object_lock(struct rf_self *self, uintptr_t addr, enum rf_object_kind kind, bool make);
void rf_object_unlock(struct rf_self *self, struct rf_object *object);
/* Is there one? No lock, may be out of date: for a fast way out. */
bool rf_object_exists(uintptr_t addr);
/* The object, not locked: for reports, which take what they find. NULL: none. */
const struct rf_object *rf_object_look(uintptr_t addr);
void rf_objects_forget(uintptr_t addr, size_t size); /* called by rf_range_return and rf_range_free */
/* They go with the memory that they lie in, those that were at the new place are forgotten. The program keeps everybody from them
 * meanwhile. guest/move.c */
void rf_objects_move(uintptr_t from, uintptr_t to, size_t size);
/* What is at detail is given back with the object: guest/barrier.c and guest/semaphore.c. */
void rf_object_detail_end(struct rf_object *object);

/* Room for so many entries in `released`. */
void rf_object_widen(struct rf_object *object, uint32_t len);
static inline void rf_object_room(struct rf_object *object, uint32_t len)
{
    if (__builtin_expect(object->sync.released.cap < len, 0))
        rf_object_widen(object, len);
}

/* The four rules on a locked object. */
void rf_object_acquire(struct rf_self *self, struct rf_object *object);       /* C_t := C_t ⊔ L */
void rf_object_release(struct rf_self *self, struct rf_object *object);       /* L := L ⊔ C_t, then a new epoch */
void rf_object_release_store(struct rf_self *self, struct rf_object *object); /* L := C_t, then a new epoch */
void rf_object_clear(struct rf_self *self, struct rf_object *object);         /* L := ⊥ */

/* The same for an address, in one step; used for everything that is not a lock (conditions, semaphores, descriptors, ...). */
void rf_acquire(uintptr_t addr, enum rf_object_kind kind);
void rf_release(uintptr_t addr, enum rf_object_kind kind);

void rf_objects_fork_before(void);
void rf_objects_fork_after(void);

#endif
