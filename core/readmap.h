/* Who has read a variable since its last write, when several threads have: a read map (PACER, section 3; AccuLock, 3.3).
 *
 * 1. An entry is an epoch, a note and a lockset. A thread is known by a range of epochs of one slot, from its first to now: it
 *    has at most one entry there, and a new one replaces it.
 * 2. A map is one cache line. As long as there are few entries, of one lockset, with epochs of 32 bits, they are in it, in no
 *    order: that is what threads that read under one lock need, and those without locks. Otherwise they are in a hash table
 *    by slot. There one place always stays free, so that every search ends. A table never goes back.
 * 3. Maps are numbered from 1, so that a cell can refer to one in 31 bits; numbers of ended maps are used again.
 */
#ifndef RF_CORE_READMAP_H
#define RF_CORE_READMAP_H

#include "core/clock.h"
#include "core/lockset.h"

#define RF_FEW_READERS 7u
#define RF_FEW_TIME_BITS 20 /* of an epoch in 32 bits; the rest is the slot */
#define RF_READMAP_CHUNK 1024u

struct rf_last_read {
    rf_epoch epoch; /* 0: a free place */
    uint32_t note;
    rf_lockset locks;
};

struct rf_read_table {
    uint32_t cap; /* a power of two */
    struct rf_last_read *reads;
};

struct rf_few_reads {
    uint32_t epochs[RF_FEW_READERS], notes[RF_FEW_READERS];
};

struct rf_readmap {
    uint32_t count : 31; /* of an unused map: the next unused one */
    uint32_t in_table : 1;
    rf_lockset locks; /* of the few */
    union {
        struct rf_few_reads few;
        struct rf_read_table many;
    };
};

_Static_assert(sizeof(struct rf_readmap) == 64, "a read map is a cache line");

struct rf_readmaps {
    struct rf_memory *memory;
    struct rf_readmap **chunks;
    uint32_t count, cap, unused; /* count: maps ever made, with number 0, which stays free; cap: of chunks */
};

static inline void rf_readmaps_init(struct rf_readmaps *all, struct rf_memory *memory)
{
    *all = (struct rf_readmaps){ .memory = memory };
}

static inline struct rf_readmap *rf_readmap_at(const struct rf_readmaps *all, uint32_t map)
{
    return &all->chunks[map / RF_READMAP_CHUNK][map % RF_READMAP_CHUNK];
}

static inline void rf_readmaps_grow(struct rf_readmaps *all)
{
    uint32_t chunk = all->count / RF_READMAP_CHUNK;
    all->chunks = rf_grow(all->memory, all->chunks, &all->cap, chunk + 1, sizeof *all->chunks);
    char *block = rf_alloc(all->memory, (RF_READMAP_CHUNK + 1) * sizeof(struct rf_readmap));
    all->chunks[chunk] = (struct rf_readmap *)(void *)(block + (-(uintptr_t)block & (sizeof(struct rf_readmap) - 1)));
    if (!chunk)
        all->count = 1;
}

static inline uint32_t rf_readmap_new(struct rf_readmaps *all)
{
    uint32_t map = all->unused;
    if (map) {
        all->unused = rf_readmap_at(all, map)->count;
    } else {
        if (all->count % RF_READMAP_CHUNK == 0)
            rf_readmaps_grow(all);
        map = all->count++;
    }
    rf_readmap_at(all, map)->count = 0;
    rf_readmap_at(all, map)->in_table = 0;
    return map;
}

static inline void rf_readmap_end(struct rf_readmaps *all, uint32_t map)
{
    struct rf_readmap *m = rf_readmap_at(all, map);
    if (m->in_table)
        rf_free(all->memory, m->many.reads, m->many.cap * sizeof *m->many.reads);
    m->in_table = 0;
    m->count = all->unused & INT32_MAX;
    all->unused = map;
}

/* How many places there are to look at, and what is in one of them. */
static inline uint32_t rf_readmap_places(const struct rf_readmap *m)
{
    return m->in_table ? m->many.cap : m->count;
}

static inline struct rf_last_read rf_readmap_read(const struct rf_readmap *m, uint32_t place)
{
    if (m->in_table)
        return m->many.reads[place];
    uint32_t epoch = m->few.epochs[place];
    return (struct rf_last_read){ rf_epoch_make(epoch >> RF_FEW_TIME_BITS, epoch & ((1u << RF_FEW_TIME_BITS) - 1)),
                                  m->few.notes[place], m->locks };
}

/* The first entry that does not happen before the clock, its epoch 0 if all do. *from: where to begin, and then to go on. */
static inline struct rf_last_read rf_readmap_unordered(const struct rf_readmap *m, const struct rf_clock *clock, uint32_t *from)
{
    for (uint32_t places = rf_readmap_places(m); *from < places;) {
        struct rf_last_read read = rf_readmap_read(m, (*from)++);
        if (read.epoch && !rf_epoch_leq(read.epoch, clock))
            return read;
    }
    return (struct rf_last_read){ 0 };
}

/* In a table: the place of the entry between the two epochs, which are of one slot, or the free place where it belongs. */
static inline struct rf_last_read *rf_read_table_place(const struct rf_read_table *table, rf_epoch first, rf_epoch now)
{
    uint32_t at = rf_epoch_slot(now) & (table->cap - 1);
    while (table->reads[at].epoch && table->reads[at].epoch - first > now - first)
        at = (at + 1) & (table->cap - 1);
    return &table->reads[at];
}

/* Moves all entries to a new table. */
static __attribute__((noinline, unused)) void rf_readmap_rehash(struct rf_readmaps *all, struct rf_readmap *m, uint32_t cap)
{
    struct rf_read_table table = { cap, rf_alloc(all->memory, cap * sizeof *table.reads) };
    for (uint32_t i = 0; i < rf_readmap_places(m); i++) {
        struct rf_last_read read = rf_readmap_read(m, i);
        if (read.epoch)
            *rf_read_table_place(&table, read.epoch, read.epoch) = read;
    }
    if (m->in_table)
        rf_free(all->memory, m->many.reads, m->many.cap * sizeof *m->many.reads);
    m->in_table = 1;
    m->many = table;
}

enum rf_readmap_change { RF_READ_SAME, RF_READ_AGAIN, RF_READ_FIRST };

static inline enum rf_readmap_change rf_readmap_put_in_table(struct rf_readmaps *all, struct rf_readmap *m, rf_epoch first,
                                                             rf_epoch now, uint32_t note, rf_lockset locks)
{
    struct rf_last_read *mine = rf_read_table_place(&m->many, first, now);
    enum rf_readmap_change change = !mine->epoch ? RF_READ_FIRST : mine->epoch == now ? RF_READ_SAME : RF_READ_AGAIN;
    if (change == RF_READ_SAME)
        return change;
    if (change == RF_READ_FIRST && ++m->count == m->many.cap - m->many.cap / 8) {
        rf_readmap_rehash(all, m, m->many.cap * 2);
        mine = rf_read_table_place(&m->many, first, now);
    }
    *mine = (struct rf_last_read){ now, note, locks };
    return change;
}

/* Puts the entry of a thread whose epochs go from `first` to `now`; says whether it had one, and whether that was of this epoch:
 * then nothing is changed. */
static inline enum rf_readmap_change rf_readmap_put(struct rf_readmaps *all, uint32_t map, rf_epoch first, rf_epoch now,
                                                    uint32_t note, rf_lockset locks)
{
    struct rf_readmap *m = rf_readmap_at(all, map);
    if (!m->in_table) {
        uint32_t slot = rf_epoch_slot(now), time = rf_epoch_time(now), i = 0;
        uint32_t now_few = slot << RF_FEW_TIME_BITS | time, span = time - rf_epoch_time(first);
        bool fits = slot >> (32 - RF_FEW_TIME_BITS) == 0 && time >> RF_FEW_TIME_BITS == 0;
        while (fits && i < m->count && now_few - m->few.epochs[i] > span)
            i++;
        if (fits && i < m->count && m->few.epochs[i] == now_few)
            return RF_READ_SAME;
        if (fits && i < RF_FEW_READERS && (m->locks == locks || !m->count)) {
            enum rf_readmap_change change = i < m->count ? RF_READ_AGAIN : RF_READ_FIRST;
            m->locks = locks;
            m->few.epochs[i] = now_few;
            m->few.notes[i] = note;
            m->count += change == RF_READ_FIRST;
            return change;
        }
        rf_readmap_rehash(all, m, 2 * (RF_FEW_READERS + 1));
    }
    return rf_readmap_put_in_table(all, m, first, now, note, locks);
}

/* Takes out the entry between two epochs of one slot, if there is one. */
static inline void rf_readmap_remove(struct rf_readmaps *all, uint32_t map, rf_epoch first, rf_epoch last)
{
    struct rf_readmap *m = rf_readmap_at(all, map);
    for (uint32_t i = 0; i < rf_readmap_places(m); i++) {
        rf_epoch epoch = rf_readmap_read(m, i).epoch;
        if (!epoch || epoch - first > last - first)
            continue;
        m->count--;
        if (m->in_table) {
            m->many.reads[i].epoch = 0;
            rf_readmap_rehash(all, m, m->many.cap); /* others may have been put behind it */
        } else {
            m->few.epochs[i] = m->few.epochs[m->count];
            m->few.notes[i] = m->few.notes[m->count];
        }
        return;
    }
}

static inline uint32_t rf_readmap_copy(struct rf_readmaps *all, uint32_t from)
{
    uint32_t map = rf_readmap_new(all);
    struct rf_readmap *m = rf_readmap_at(all, map);
    *m = *rf_readmap_at(all, from);
    if (m->in_table) {
        struct rf_last_read *reads = rf_alloc(all->memory, m->many.cap * sizeof *reads);
        memcpy(reads, m->many.reads, m->many.cap * sizeof *reads);
        m->many.reads = reads;
    }
    return map;
}

#endif
