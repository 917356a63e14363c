/* Who has read a variable since its last write, when several have: sets of epochs with notes.
 *
 * 1. A set is a unit of 64 bytes, named by a number of 31 bits; a few readers are in the unit, many in a table that it refers to.
 * 2. A set belongs to a cell and is changed under the cell's lock. Without the lock a goroutine may look whether its own present epoch
 *    is in it: it reads no foreign memory, as units stay units and tables stay tables,
 *    and it believes what it saw only if the cell still names the set. Nobody but the goroutine itself puts its epoch into a set. What
 *    remains: between two looks the unit went to another cell that the goroutine has read in this epoch, and came back; that takes
 *    others several hooks while this one does not run for one; then a read is not recorded.
 */
#ifndef RF_GO_READERS_H
#define RF_GO_READERS_H

#include "core/readmap.h"
#include "go/goroutines.h"

#define READERS_MOST ((UINT32_C(1) << 31) - 1)
#define READERS_FEW 4u
#define READERS_MANY UINT32_MAX

struct reader_table {
    uint32_t count, cap; /* cap: a power of two; at least one place is free */
    struct {
        rf_epoch epoch;
        uint32_t note, pad;
    } at[];
};

/* Where the epochs are: go/layout.h. Those beyond the count are 0. */
struct readers {
    uint32_t count; /* READERS_MANY: they are in the table */
    uint32_t notes[READERS_FEW];
    uint32_t next; /* of those that are free */
    rf_epoch epochs[READERS_FEW];
    struct reader_table *table;
};

_Static_assert(sizeof(struct readers) == GO_READER_SIZE && offsetof(struct readers, epochs) == GO_READER_EPOCHS && READERS_FEW == 4,
               "go/layout.h");

static struct {
    uint32_t lock, free, next, end;
} __attribute__((aligned(64))) readers_pools[STRIPES];
static uint32_t readers_taken = 1; /* atomically; number 0 is none */

static inline struct readers *readers_at(uint32_t number)
{
    return (struct readers *)GO_READERS_AT + number;
}

static void readers_begin(void)
{
    pages_at(GO_READERS_AT, READERS_MOST * sizeof(struct readers));
}

static uint32_t readers_new(void)
{
    unsigned stripe = (unsigned)(pool_here() - pools);
    spin_lock(&readers_pools[stripe].lock);
    uint32_t number = readers_pools[stripe].free;
    if (number)
        readers_pools[stripe].free = readers_at(number)->next;
    else {
        if (readers_pools[stripe].next == readers_pools[stripe].end) {
            readers_pools[stripe].next = __atomic_fetch_add(&readers_taken, 256, __ATOMIC_RELAXED);
            readers_pools[stripe].end = readers_pools[stripe].next + 256;
            if (readers_pools[stripe].end > READERS_MOST)
                give_up("there are too many variables that several goroutines read");
        }
        number = readers_pools[stripe].next++;
    }
    spin_unlock(&readers_pools[stripe].lock);
    readers_at(number)->count = 0;
    memset(readers_at(number)->epochs, 0, sizeof readers_at(number)->epochs);
    return number;
}

static size_t reader_table_size(uint32_t cap)
{
    return sizeof(struct reader_table) + cap * sizeof(((struct reader_table *)NULL)->at[0]);
}

/* Tables that are free, by size: their memory is used again only for tables of that size (invariant 2). */
static struct {
    uint32_t lock;
    void *free[32];
} reader_tables;

static struct reader_table *reader_table_new(uint32_t cap)
{
    unsigned class = (unsigned)__builtin_ctz(cap);
    spin_lock(&reader_tables.lock);
    struct reader_table *table = reader_tables.free[class];
    if (table)
        memcpy(&reader_tables.free[class], &table->at[1].epoch, sizeof(void *));
    spin_unlock(&reader_tables.lock);
    if (!table)
        table = take(reader_table_size(cap));
    memset(table->at, 0, reader_table_size(cap) - sizeof *table);
    table->count = 0;
    table->cap = cap;
    return table;
}

static void reader_table_end(struct reader_table *table)
{
    unsigned class = (unsigned)__builtin_ctz(table->cap);
    spin_lock(&reader_tables.lock);
    memcpy(&table->at[1].epoch, &reader_tables.free[class], sizeof(void *));
    reader_tables.free[class] = table;
    spin_unlock(&reader_tables.lock);
}

static void readers_end(uint32_t number)
{
    struct readers *readers = readers_at(number);
    if (readers->count == READERS_MANY)
        reader_table_end(readers->table);
    __atomic_store_n(&readers->count, 0, __ATOMIC_RELAXED);
    unsigned stripe = (unsigned)(pool_here() - pools);
    spin_lock(&readers_pools[stripe].lock);
    readers->next = readers_pools[stripe].free;
    readers_pools[stripe].free = number;
    spin_unlock(&readers_pools[stripe].lock);
}

/* The place of the slot's entry, or the free one where it belongs. */
static uint32_t reader_place(const struct reader_table *table, uint32_t slot)
{
    uint32_t at = slot * 0x9e3779b1u >> 7 & (table->cap - 1);
    while (table->at[at].epoch && epoch_slot(table->at[at].epoch) != slot)
        at = (at + 1) & (table->cap - 1);
    return at;
}

static void reader_table_add(struct reader_table *table, rf_epoch epoch, uint32_t note)
{
    uint32_t at = reader_place(table, epoch_slot(epoch));
    table->count += !table->at[at].epoch;
    table->at[at].note = note;
    __atomic_store_n(&table->at[at].epoch, epoch, __ATOMIC_RELEASE);
}

/* A table with room for one more that has all but those the view knows. */
static struct reader_table *reader_table_filled(const struct readers *readers, const struct view *view, rf_epoch keep)
{
    uint32_t left = 0, places = readers->count == READERS_MANY ? readers->table->cap : readers->count;
    for (int round = 0;; round++) {
        uint32_t cap = 16;
        while (round && cap < 2 * left + 2)
            cap *= 2;
        struct reader_table *table = round ? reader_table_new(cap) : NULL;
        for (uint32_t i = 0; i < places; i++) {
            rf_epoch epoch = readers->count == READERS_MANY ? readers->table->at[i].epoch : readers->epochs[i];
            if (!epoch || (epoch != keep && view_knows(view, epoch)))
                continue;
            left++;
            if (round)
                reader_table_add(table, epoch, readers->count == READERS_MANY ? readers->table->at[i].note : readers->notes[i]);
        }
        if (round)
            return table;
    }
}

/* Puts an epoch of its goroutine, whose view is given. Entries that happen before it are not needed beside it (Wood, Invariant 2). */
static enum rf_readmap_change readers_put(uint32_t number, const struct view *view, rf_epoch epoch, uint32_t note)
{
    struct readers *readers = readers_at(number);
    if (readers->count != READERS_MANY) {
        enum rf_readmap_change change = RF_READ_FIRST;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < readers->count; i++)
            if (readers->epochs[i] == epoch)
                return RF_READ_SAME;
        for (uint32_t i = 0; i < readers->count; i++) {
            rf_epoch old = readers->epochs[i];
            if (epoch_slot(old) == epoch_slot(epoch))
                change = RF_READ_AGAIN;
            else if (!view_knows(view, old)) {
                readers->notes[kept] = readers->notes[i];
                __atomic_store_n(&readers->epochs[kept++], old, __ATOMIC_RELAXED);
            }
        }
        if (kept < READERS_FEW) {
            for (uint32_t i = kept + 1; i < readers->count; i++)
                __atomic_store_n(&readers->epochs[i], 0, __ATOMIC_RELAXED);
            readers->notes[kept] = note;
            __atomic_store_n(&readers->epochs[kept], epoch, __ATOMIC_RELAXED);
            __atomic_store_n(&readers->count, kept + 1, __ATOMIC_RELEASE);
            return change;
        }
        struct reader_table *table = reader_table_filled(readers, view, 0);
        reader_table_add(table, epoch, note);
        __atomic_store_n(&readers->table, table, __ATOMIC_RELEASE);
        __atomic_store_n(&readers->count, READERS_MANY, __ATOMIC_RELEASE);
        return change;
    }
    uint32_t at = reader_place(readers->table, epoch_slot(epoch));
    rf_epoch old = readers->table->at[at].epoch;
    if (old == epoch)
        return RF_READ_SAME;
    if (!old && readers->table->count + 1 >= readers->table->cap - readers->table->cap / 8) {
        struct reader_table *larger = reader_table_filled(readers, view, 0);
        reader_table_end(readers->table);
        __atomic_store_n(&readers->table, larger, __ATOMIC_RELEASE);
    }
    reader_table_add(readers->table, epoch, note);
    return old ? RF_READ_AGAIN : RF_READ_FIRST;
}

/* Puts an epoch of a goroutine whose slot is in the set already; false, and nothing has changed, if it is not. */
static inline bool readers_put_again(uint32_t number, rf_epoch epoch, uint32_t note)
{
    struct readers *readers = readers_at(number);
    uint32_t slot = epoch_slot(epoch);
    if (readers->count == READERS_MANY) {
        uint32_t at = reader_place(readers->table, slot);
        if (!readers->table->at[at].epoch)
            return false;
        readers->table->at[at].note = note;
        __atomic_store_n(&readers->table->at[at].epoch, epoch, __ATOMIC_RELEASE);
        return true;
    }
    for (uint32_t i = 0; i < readers->count; i++)
        if (epoch_slot(readers->epochs[i]) == slot) {
            readers->notes[i] = note;
            __atomic_store_n(&readers->epochs[i], epoch, __ATOMIC_RELEASE);
            return true;
        }
    return false;
}

static uint32_t readers_copied(uint32_t from)
{
    uint32_t number = readers_new();
    struct readers *copy = readers_at(number), *old = readers_at(from);
    if (old->count == READERS_MANY) {
        copy->table = reader_table_new(old->table->cap);
        memcpy(copy->table, old->table, reader_table_size(old->table->cap));
    } else {
        memcpy(copy->notes, old->notes, sizeof copy->notes);
        memcpy(copy->epochs, old->epochs, sizeof copy->epochs);
    }
    __atomic_store_n(&copy->count, old->count, __ATOMIC_RELEASE);
    return number;
}

/* A reader that does not happen before the view; its epoch is 0 if all do. */
static rf_epoch readers_unordered(uint32_t number, const struct view *view, uint32_t *note)
{
    const struct readers *readers = readers_at(number);
    uint32_t places = readers->count == READERS_MANY ? readers->table->cap : readers->count;
    for (uint32_t i = 0; i < places; i++) {
        rf_epoch epoch = readers->count == READERS_MANY ? readers->table->at[i].epoch : readers->epochs[i];
        if (epoch && !view_knows(view, epoch)) {
            *note = readers->count == READERS_MANY ? readers->table->at[i].note : readers->notes[i];
            return epoch;
        }
    }
    return 0;
}

/* Without the lock: invariant 2. */
static inline bool readers_have(uint32_t number, rf_epoch epoch)
{
    const struct readers *readers = readers_at(number);
    uint32_t count = __atomic_load_n(&readers->count, __ATOMIC_ACQUIRE);
    if (count != READERS_MANY) {
        bool found = false;
        for (unsigned i = 0; i < READERS_FEW; i++)
            found |= __atomic_load_n(&readers->epochs[i], __ATOMIC_RELAXED) == epoch;
        return found;
    }
    const struct reader_table *table = __atomic_load_n(&readers->table, __ATOMIC_ACQUIRE);
    uint32_t cap = table ? __atomic_load_n(&table->cap, __ATOMIC_RELAXED) : 0;
    if (!cap || cap & (cap - 1))
        return false;
    uint32_t slot = epoch_slot(epoch), at = slot * 0x9e3779b1u >> 7 & (cap - 1);
    for (uint32_t looks = 0; looks < 32; looks++, at = (at + 1) & (cap - 1)) {
        rf_epoch found = __atomic_load_n(&table->at[at].epoch, __ATOMIC_RELAXED);
        if (found == epoch || !found)
            return found == epoch;
    }
    return false;
}

#endif
