/* Where objects are.
 *
 * 1. Each 4 KiB page of user addresses has a cell (guest/planes.h). 0: no objects. Even: a list of at most FEW objects. Odd: a
 *    directory, with a list for each 64 bytes of the page. A directory's memory is used again only for directories. The upper 16 bits
 *    say for which granules it is worth a look: who looks for an object that is not there does not touch those that are, which
 *    others may be changing all the time. A bit may stay when the last of its objects goes.
 * 2. Cells, directories and lists change only under the page's lock (one of LOCKS, by its number), whose `changes` is odd meanwhile.
 * 3. Who looks without the lock may run into a list that is being changed. If it finds the address, that is the object or was it a
 *    moment ago: taking the object's lock and looking at the address again tells. If it finds none and `changes` has moved, it looks
 *    again. Every pointer met on the way is an object's or NULL (guest/objects.h, 5).
 * 4. Locks are taken in the order: page, object. Who holds an object's lock takes no page's.
 */
#include "guest/objects.h"

#include "guest/locks.h"
#include "guest/memory.h"
#include "guest/planes.h"
#include "guest/seen.h"
#include "guest/spin.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/transactions.h"
#include "guest/versions.h"

#define FEW 4u
#define LOCKS 256u
#define AT_ONCE 15u /* objects whose memory is taken together */
#define PAGE 4096u
#define PARTS RF_OBJECT_PARTS

static struct {
    uint32_t lock, changes;
    uint64_t pad[7]; /* a line of the cache each */
} pages[LOCKS];

static uint32_t pool_lock; /* of those below */
static struct rf_object *free_objects, *new_objects, *new_objects_end;
static struct rf_directory *free_directories;

/* ---- ranges without objects ---- */

/* For each region of 2 MiB whether it ever had an object: so that unmapping a large range looks at few cells. A bit may be set
 * without need after the addresses wrap around the table; then cells are looked at in vain. */
#define REGION_BITS 21
#define REGIONS (1u << 16)
static uint8_t region_used[REGIONS];

static uint8_t *region_of(uintptr_t addr)
{
    uintptr_t region = addr >> REGION_BITS;
    return &region_used[(region ^ region >> 16) & (REGIONS - 1)];
}

/* ---- finding ---- */

static inline unsigned page_number(uintptr_t addr)
{
    uintptr_t page = addr / PAGE;
    return (unsigned)(page ^ page >> 8 ^ page >> 16) % LOCKS;
}

/* NULL is certain: at some instant during the call there was none. */
static struct rf_object *find_surely(uintptr_t addr)
{
    uint32_t *changes = &pages[page_number(addr)].changes;
    for (;;) {
        uint32_t before = __atomic_load_n(changes, __ATOMIC_ACQUIRE);
        struct rf_object *object = rf_object_find(addr);
        if (object || rf_object_is_nowhere(addr))
            return object;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (!(before & 1) && __atomic_load_n(changes, __ATOMIC_RELAXED) == before)
            return NULL;
        __builtin_ia32_pause();
    }
}

bool rf_object_exists(uintptr_t addr)
{
    return !rf_object_is_nowhere(addr) && find_surely(addr);
}

const struct rf_object *rf_object_look(uintptr_t addr)
{
    return find_surely(addr);
}

/* ---- changing, under the page's lock ---- */

static void change_begin(unsigned page)
{
    rf_spin_lock(&pages[page].lock);
    __atomic_store_n(&pages[page].changes, pages[page].changes + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void change_end(unsigned page)
{
    __atomic_store_n(&pages[page].changes, pages[page].changes + 1, __ATOMIC_RELEASE);
    rf_spin_unlock(&pages[page].lock);
}

static struct rf_object *object_new(void)
{
    rf_spin_lock(&pool_lock);
    struct rf_object *object = free_objects;
    if (object) {
        free_objects = object->detail;
    } else {
        if (new_objects == new_objects_end) { /* never given back: invariant 5 */
            char *block = rf_take((AT_ONCE + 1) * sizeof *object);
            new_objects = (struct rf_object *)(((uintptr_t)block + 63) & ~(uintptr_t)63);
            new_objects_end = new_objects + AT_ONCE;
        }
        object = new_objects++;
    }
    rf_spin_unlock(&pool_lock);
    return object;
}

static void object_give(struct rf_object *object)
{
    rf_spin_lock(&pool_lock);
    object->detail = free_objects;
    free_objects = object;
    rf_spin_unlock(&pool_lock);
}

/* Directories that are free hang together by a word of its own: who still reads the parts must find objects or NULL there. */
struct free_directory {
    struct rf_directory directory;
    struct rf_directory *next;
};

static struct rf_directory *directory_new(void)
{
    rf_spin_lock(&pool_lock);
    struct rf_directory *directory = free_directories;
    if (directory)
        free_directories = ((struct free_directory *)directory)->next;
    rf_spin_unlock(&pool_lock);
    return directory ? directory : rf_take(sizeof(struct free_directory));
}

static void directory_give(struct rf_directory *directory)
{
    rf_spin_lock(&pool_lock);
    ((struct free_directory *)directory)->next = free_directories;
    free_directories = directory;
    rf_spin_unlock(&pool_lock);
}

static void push(struct rf_object **list, struct rf_object *object)
{
    __atomic_store_n(&object->next, *list, __ATOMIC_RELAXED);
    __atomic_store_n(list, object, __ATOMIC_RELEASE);
}

static struct rf_object *first_of(uint64_t cell)
{
    return (struct rf_object *)(cell & RF_CELL_POINTER);
}

static struct rf_directory *make_directory(uint64_t *cell)
{
    struct rf_directory *directory = directory_new();
    for (struct rf_object *object = first_of(*cell), *next; object; object = next) {
        next = object->next;
        push(&directory->parts[object->addr / 64 % PARTS], object);
        directory->count++;
    }
    __atomic_store_n(cell, (*cell & ~RF_CELL_POINTER) | (uintptr_t)directory | 1, __ATOMIC_RELEASE);
    return directory;
}

static struct rf_directory *directory_of(uint64_t cell)
{
    return cell & 1 ? (struct rf_directory *)((cell & RF_CELL_POINTER) - 1) : NULL;
}

static void insert(struct rf_object *object)
{
    uint64_t *cell = rf_object_page(object->addr), bits = (*cell & ~RF_CELL_POINTER) | rf_cell_bit(object->addr);
    struct rf_directory *directory = directory_of(*cell);
    if (!directory) {
        unsigned count = 0;
        for (struct rf_object *o = first_of(*cell); o; o = o->next)
            count++;
        if (count >= FEW)
            directory = make_directory(cell);
    }
    if (directory) {
        directory->count++;
        push(&directory->parts[object->addr / 64 % PARTS], object);
        __atomic_store_n(cell, bits | (*cell & RF_CELL_POINTER), __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&object->next, first_of(*cell), __ATOMIC_RELAXED);
        __atomic_store_n(cell, bits | (uintptr_t)object, __ATOMIC_RELEASE);
    }
    *region_of(object->addr) = 1;
}

static void end_released(struct rf_object *object)
{
    if (object->sync.released.times != object->few)
        rf_clock_give(&object->sync.released);
    object->sync.released = (struct rf_clock){ 0 };
    object->released_version = object->readers_version = 0;
    memset(object->few, 0, sizeof object->few);
}

/* Takes those in [from, to) out of a list. */
static unsigned take_out(struct rf_object **list, uintptr_t from, uintptr_t to)
{
    unsigned count = 0;
    for (struct rf_object *object; (object = *list);) {
        if (object->addr < from || object->addr >= to) {
            list = &object->next;
            continue;
        }
        __atomic_store_n(list, object->next, __ATOMIC_RELEASE);
        rf_spin_lock(&object->lock); /* whoever is at it finishes; whoever comes later sees that it is gone */
        if (object->lock_number)
            rf_lock_order_forget(object->lock_number);
        rf_object_detail_end(object);
        if (rf_tap)
            rf_tap_forgotten(object);
        end_released(object);
        rf_clock_give(&object->sync.readers);
        /* All is as in new memory, but for the lock, for which others may be waiting, and for next, which others may be reading. */
        __atomic_store_n(&object->addr, 0, __ATOMIC_RELAXED);
        object->kind = RF_O_NONE;
        object->sync.last = 0;
        object->created = object->lock_number = object->owner = object->depth = object->flags = 0;
        object->last_store = object->extra = object->owner_note = object->reading = object->toucher = object->quick = object->alone = 0;
        object->key = object->own_key = 0;
        rf_spin_unlock(&object->lock);
        object_give(object);
        count++;
    }
    return count;
}

/* [from, to) lies in one page. */
static void forget_in_page(uintptr_t from, uintptr_t to)
{
    uint64_t *cell = rf_object_page(from);
    if (!__atomic_load_n(cell, __ATOMIC_RELAXED))
        return;
    unsigned page = page_number(from);
    change_begin(page);
    struct rf_directory *directory = directory_of(*cell);
    if (!directory) {
        struct rf_object *list = first_of(*cell);
        uint64_t bits = 0;
        take_out(&list, from, to);
        for (struct rf_object *object = list; object; object = object->next)
            bits |= rf_cell_bit(object->addr);
        __atomic_store_n(cell, bits | (uintptr_t)list, __ATOMIC_RELEASE);
    } else {
        for (unsigned part = from / 64 % PARTS; part <= (to - 1) / 64 % PARTS; part++)
            directory->count -= take_out(&directory->parts[part], from, to);
        if (!directory->count) {
            __atomic_store_n(cell, 0, __ATOMIC_RELEASE);
            directory_give(directory);
        }
    }
    change_end(page);
}

void rf_objects_forget(uintptr_t addr, size_t size)
{
    struct rf_self *self = rf_hot.self;
    uintptr_t end = addr + size;
    if (__builtin_expect(rf_txn_used, 0))
        rf_txn_forget(addr, size);
    if (size <= PAGE && !__atomic_load_n(rf_object_page(addr), __ATOMIC_RELAXED) &&
        !__atomic_load_n(rf_object_page(end - 1), __ATOMIC_RELAXED))
        return;
    bool mine = rf_busy_enter(self);
    while (addr < end) {
        uintptr_t next = (addr | (PAGE - 1)) + 1;
        if (!*region_of(addr)) {
            addr = (addr | (((uintptr_t)1 << REGION_BITS) - 1)) + 1;
            continue;
        }
        forget_in_page(addr, next < end ? next : end);
        addr = next;
    }
    rf_busy_leave(self, mine);
}

/* ---- locking ---- */

/* Invariant 2 of guest/objects.h: a use that is none of the lock itself. */
static inline bool meets_quick(const struct rf_object *object, enum rf_object_kind kind)
{
    return kind > RF_O_SPIN && object->quick && object->quick != RF_NEVER_QUICK;
}

static void end_quick(struct rf_self *self, struct rf_object *object, uintptr_t addr)
{
    rf_spin_unlock(&object->lock);
    rf_busy_end(self);
    self->inside++;
    rf_world_stop(self);
    if (object->addr == addr)
        object->quick = RF_NEVER_QUICK;
    rf_world_go(self);
    self->inside--;
    rf_busy_begin(self);
}

static __attribute__((noinline)) struct rf_object *lock_slowly(struct rf_self *self, uintptr_t addr, enum rf_object_kind kind,
                                                               bool make)
{
    for (;;) {
        struct rf_object *object = find_surely(addr);
        if (!object) {
            if (!make) {
                rf_busy_end(self);
                return NULL;
            }
            unsigned page = page_number(addr);
            change_begin(page);
            object = rf_object_find(addr);
            if (!object) {
                object = object_new();
                rf_spin_lock(&object->lock); /* one that was forgotten may have someone at it who is about to see that */
                object->kind = kind;
                object->detail = NULL;
                __atomic_store_n(&object->addr, addr, __ATOMIC_RELAXED);
                insert(object);
                change_end(page);
                return object;
            }
            change_end(page);
        }
        rf_spin_lock(&object->lock);
        if (object->addr == addr && !meets_quick(object, kind))
            return object;
        if (object->addr == addr)
            end_quick(self, object, addr);
        else
            rf_spin_unlock(&object->lock);
    }
}

struct rf_object *rf_object_lock(struct rf_self *self, uintptr_t addr, enum rf_object_kind kind, bool make)
{
    rf_busy_begin(self);
    struct rf_object *object = rf_object_find(addr);
    if (__builtin_expect(object != NULL, 1)) {
        if (__builtin_expect(__atomic_load_n(&object->lock, __ATOMIC_RELAXED), 0))
            rf_spin_wait(&object->lock);
        if (__builtin_expect(!__atomic_exchange_n(&object->lock, 1, __ATOMIC_ACQUIRE), 1)) {
            if (__builtin_expect(object->addr == addr && !meets_quick(object, kind), 1))
                return object;
            rf_spin_unlock(&object->lock);
        }
    }
    return lock_slowly(self, addr, kind, make);
}

void rf_object_unlock(struct rf_self *self, struct rf_object *object)
{
    rf_spin_unlock(&object->lock);
    rf_busy_end(self);
}

/* ---- the rules ---- */

void rf_object_acquire(struct rf_self *self, struct rf_object *object)
{
    /* Who listens at the tap may not take a lock's acquire for one of what was published beside it. */
    bool told_apart = rf_tap && object->lock_number;
    if (object->sync.last == self->thread.index + 1 && !told_apart)
        return;
    if (rf_tap)
        rf_tap_receive(self, RF_TAP_SELF, object, rf_tap_key(object));
    rf_clock_room(&self->thread.clock, object->sync.released.len);
    if (rf_has_versions(self))
        rf_version_receive(self, &object->sync.released, object->released_version);
    else
        rf_order_receive(&self->order, &self->thread, &object->sync);
    rf_seen_forget(); /* whoever hands memory over may have made it new */
}

void rf_object_widen(struct rf_object *object, uint32_t len)
{
    struct rf_clock *clock = &object->sync.released;
    if (!clock->cap && len <= RF_OBJECT_FEW) {
        clock->times = object->few;
        clock->cap = RF_OBJECT_FEW;
        return;
    }
    if (clock->times != object->few) {
        rf_clock_widen(clock, len);
        return;
    }
    struct rf_clock wide = { 0 };
    rf_clock_widen(&wide, len);
    memcpy(wide.times, object->few, sizeof object->few);
    wide.len = clock->len;
    *clock = wide;
}

/* Times advance with moments (guest/threads.h, 4): there is none to tick here. */
void rf_object_release(struct rf_self *self, struct rf_object *object)
{
    struct rf_sync *sync = &object->sync;
    uint32_t me = self->thread.index + 1;
    if (rf_tap)
        rf_tap_publish(self, RF_TAP_SELF, object, rf_tap_key(object));
    rf_object_room(object, self->thread.clock.len);
    sync->last = sync->released.len && sync->last != me ? 0 : me;
    rf_clock_publish(self, &sync->released, &object->released_version);
    rf_epoch_begin(self);
}

void rf_object_release_store(struct rf_self *self, struct rf_object *object)
{
    if (rf_tap && object->sync.released.len && object->sync.last != self->thread.index + 1)
        rf_tap_renew(object);
    if (rf_tap)
        rf_tap_publish(self, RF_TAP_SELF, object, rf_tap_key(object));
    rf_object_room(object, self->thread.clock.len);
    rf_clock_replace(self, &object->sync.released, &object->released_version);
    object->sync.last = self->thread.index + 1;
    rf_epoch_begin(self);
}

void rf_object_clear(struct rf_self *self, struct rf_object *object)
{
    (void)self;
    if (rf_tap && object->sync.released.len)
        rf_tap_renew(object);
    rf_clock_clear(&object->sync.released);
    rf_version_lost(&object->released_version);
    object->sync.last = 0;
}

void rf_acquire(uintptr_t addr, enum rf_object_kind kind)
{
    struct rf_self *self = rf_self();
    if (!self || self->ignore_sync || !rf_object_exists(addr))
        return;
    struct rf_object *object = rf_object_lock(self, addr, kind, false);
    if (!object)
        return;
    rf_object_acquire(self, object);
    rf_object_unlock(self, object);
}

void rf_release(uintptr_t addr, enum rf_object_kind kind)
{
    struct rf_self *self = rf_self();
    if (!self || self->ignore_sync)
        return;
    struct rf_object *object = rf_object_lock(self, addr, kind, true);
    rf_object_release(self, object);
    rf_object_unlock(self, object);
}

/* ---- fork ---- */

/* The world is stopped, so nobody holds any but threads that the guest does not know; they hold them for a few instructions. */
void rf_objects_fork_before(void)
{
    for (unsigned i = 0; i < LOCKS; i++)
        rf_spin_lock(&pages[i].lock);
    rf_spin_lock(&pool_lock);
}

void rf_objects_fork_after(void)
{
    rf_spin_unlock(&pool_lock);
    for (unsigned i = 0; i < LOCKS; i++)
        rf_spin_unlock(&pages[i].lock);
}
