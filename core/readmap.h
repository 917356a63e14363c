/* Who has read a variable since its last write, when several threads have: a read map (PACER, section 3; AccuLock, 3.3).
 *
 * 1. An entry is an epoch, a note and a lockset. A thread is known by a range of epochs of one slot, from its first to now:
 *    it has at most one entry there, and a new one replaces it.
 * 2. As long as there are few entries, of one lockset, with epochs of 32 bits, they are in one cache line, in no order: that
 *    is what threads that read under one lock need, and those without locks. Otherwise they are in a hash table by slot.
 *    There one place always stays free, so that every search ends. A table never goes back.
 * 3. The cell that refers to a map also keeps a struct rf_reads for it: how many there are, their lockset, and a filter that
 *    tells which slots have no entry. So a first read is put in, and a map given back, without loading the line:
 *    it is likely to be far away, while a store to it can wait.
 * 4. Maps are numbered, so that a cell can refer to one in 31 bits; numbers of ended maps are used again. The first number of
 *    each chunk stays free: what its map would take is what it takes to begin the others at a cache line.
 */
#ifndef RF_CORE_READMAP_H
#define RF_CORE_READMAP_H

#include "core/clock.h"
#include "core/lockset.h"

#define RF_FEW_READERS 8u
#define RF_FEW_TIME_BITS 20 /* of an epoch in 32 bits; the rest is the slot */
#define RF_READMAP_CHUNK 1024u

#define RF_READS_COUNT 15u    /* the bits of rf_reads.filter that count; above them a bit for every 24th slot: 28 bits in all */
#define RF_READS_SLOTS 24u
#define RF_READS_IN_TABLE 15u /* what they are when there is a table */

struct rf_reads {
    uint32_t filter;
    rf_lockset locks; /* of all of the few */
};

struct rf_last_read {
    rf_epoch epoch; /* 0: a free place */
    uint32_t note;
    rf_lockset locks;
};

struct rf_read_table {
    uint32_t count, cap; /* cap: a power of two */
    struct rf_last_read *reads;
};

struct rf_few_reads {
    uint32_t epochs[RF_FEW_READERS], notes[RF_FEW_READERS];
};

union rf_readmap {
    struct rf_few_reads few;
    struct rf_read_table many;
};

_Static_assert(sizeof(union rf_readmap) == 64, "a read map is a cache line");

struct rf_readmaps {
    struct rf_memory *memory;
    union rf_readmap **chunks; /* each begins with its second map */
    uint32_t count, chunk_cap; /* count: numbers ever given, and those that stay free */
    uint32_t *unused;          /* numbers to use again */
    uint32_t unused_count, unused_cap;
};

static inline void rf_readmaps_init(struct rf_readmaps *all, struct rf_memory *memory)
{
    *all = (struct rf_readmaps){ .memory = memory };
}

static inline union rf_readmap *rf_readmap_at(const struct rf_readmaps *all, uint32_t map)
{
    return &all->chunks[map / RF_READMAP_CHUNK][map % RF_READMAP_CHUNK - 1];
}

static inline bool rf_reads_in_table(const struct rf_reads *reads)
{
    return (reads->filter & RF_READS_COUNT) == RF_READS_IN_TABLE;
}

static inline void rf_readmaps_grow(struct rf_readmaps *all)
{
    uint32_t chunk = all->count / RF_READMAP_CHUNK;
    all->chunks = rf_grow(all->memory, all->chunks, &all->chunk_cap, chunk + 1, sizeof *all->chunks);
    char *block = rf_alloc(all->memory, RF_READMAP_CHUNK * sizeof(union rf_readmap));
    all->chunks[chunk] = (union rf_readmap *)(void *)(block + (-(uintptr_t)block & (sizeof(union rf_readmap) - 1)));
    all->memory->spare += (RF_READMAP_CHUNK - 1) * sizeof(union rf_readmap);
    all->count++;
}

/* An empty map: its struct rf_reads is all zero. */
static inline uint32_t rf_readmap_new(struct rf_readmaps *all)
{
    if (all->unused_count)
        return all->unused[--all->unused_count];
    if (all->count % RF_READMAP_CHUNK == 0)
        rf_readmaps_grow(all);
    all->memory->spare -= sizeof(union rf_readmap);
    return all->count++;
}

static inline void rf_readmap_end(struct rf_readmaps *all, uint32_t map, const struct rf_reads *reads)
{
    if (rf_reads_in_table(reads)) {
        struct rf_read_table *table = &rf_readmap_at(all, map)->many;
        rf_free(all->memory, table->reads, table->cap * sizeof *table->reads);
    }
    all->unused = rf_grow(all->memory, all->unused, &all->unused_cap, all->unused_count + 1, sizeof *all->unused);
    all->unused[all->unused_count++] = map;
}

/* How many places there are to look at, and what is in one of them. */
static inline uint32_t rf_readmap_places(const union rf_readmap *m, const struct rf_reads *reads)
{
    return rf_reads_in_table(reads) ? m->many.cap : reads->filter & RF_READS_COUNT;
}

static inline struct rf_last_read rf_readmap_read(const union rf_readmap *m, const struct rf_reads *reads, uint32_t place)
{
    if (rf_reads_in_table(reads))
        return m->many.reads[place];
    uint32_t epoch = m->few.epochs[place];
    return (struct rf_last_read){ rf_epoch_make(epoch >> RF_FEW_TIME_BITS, epoch & ((1u << RF_FEW_TIME_BITS) - 1)),
                                  m->few.notes[place], reads->locks };
}

/* The first entry that does not happen before the clock, its epoch 0 if all do. *from: where to begin, and then to go on. */
static inline struct rf_last_read rf_readmap_unordered(const union rf_readmap *m, const struct rf_reads *reads,
                                                       const struct rf_clock *clock, uint32_t *from)
{
    for (uint32_t places = rf_readmap_places(m, reads); *from < places;) {
        struct rf_last_read read = rf_readmap_read(m, reads, (*from)++);
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
static __attribute__((noinline, unused)) void rf_readmap_rehash(struct rf_readmaps *all, union rf_readmap *m,
                                                                struct rf_reads *reads, uint32_t cap)
{
    struct rf_read_table table = { 0, cap, rf_alloc(all->memory, cap * sizeof *table.reads) };
    for (uint32_t i = 0; i < rf_readmap_places(m, reads); i++) {
        struct rf_last_read read = rf_readmap_read(m, reads, i);
        if (!read.epoch)
            continue;
        *rf_read_table_place(&table, read.epoch, read.epoch) = read;
        table.count++;
    }
    if (rf_reads_in_table(reads))
        rf_free(all->memory, m->many.reads, m->many.cap * sizeof *m->many.reads);
    reads->filter = RF_READS_IN_TABLE;
    m->many = table;
}

enum rf_readmap_change { RF_READ_SAME, RF_READ_AGAIN, RF_READ_FIRST };

static __attribute__((noinline, unused)) enum rf_readmap_change
rf_readmap_put_in_table(struct rf_readmaps *all, union rf_readmap *m, struct rf_reads *reads, rf_epoch first,
                        struct rf_last_read read)
{
    struct rf_last_read *mine = rf_read_table_place(&m->many, first, read.epoch);
    enum rf_readmap_change change = !mine->epoch ? RF_READ_FIRST : mine->epoch == read.epoch ? RF_READ_SAME : RF_READ_AGAIN;
    if (change == RF_READ_FIRST && m->many.count + 1 == m->many.cap - m->many.cap / 8) {
        rf_readmap_rehash(all, m, reads, m->many.cap * 2);
        mine = rf_read_table_place(&m->many, first, read.epoch);
    }
    m->many.count += change == RF_READ_FIRST;
    if (change != RF_READ_SAME)
        *mine = read;
    return change;
}

/* Puts the entry of a thread whose epochs go from `first` to `now`. Says whether it had one, and whether that was of this
 * epoch: then nothing is changed. */
static inline enum rf_readmap_change rf_readmap_put(struct rf_readmaps *all, uint32_t map, struct rf_reads *reads,
                                                    rf_epoch first, rf_epoch now, uint32_t note, rf_lockset locks)
{
    union rf_readmap *m = rf_readmap_at(all, map);
    uint32_t count = reads->filter & RF_READS_COUNT;
    if (count != RF_READS_IN_TABLE) {
        uint32_t slot = rf_epoch_slot(now), time = rf_epoch_time(now);
        uint32_t few = slot << RF_FEW_TIME_BITS | time, span = time - rf_epoch_time(first);
        uint32_t bit = (RF_READS_COUNT + 1) << slot % RF_READS_SLOTS, at = count;
        bool fits = slot >> (32 - RF_FEW_TIME_BITS) == 0 && time >> RF_FEW_TIME_BITS == 0;
        if (fits && reads->filter & bit)
            for (at = 0; at < count && few - m->few.epochs[at] > span;)
                at++;
        if (fits && at < count && m->few.epochs[at] == few)
            return RF_READ_SAME;
        if (fits && at < RF_FEW_READERS && (reads->locks == locks || !count)) {
            m->few.epochs[at] = few;
            m->few.notes[at] = note;
            reads->locks = locks;
            reads->filter = (reads->filter | bit) + (at == count);
            return at == count ? RF_READ_FIRST : RF_READ_AGAIN;
        }
        rf_readmap_rehash(all, m, reads, 2 * RF_FEW_READERS);
    }
    return rf_readmap_put_in_table(all, m, reads, first, (struct rf_last_read){ now, note, locks });
}

/* Takes out the entry between two epochs of one slot, if there is one. */
static inline void rf_readmap_remove(struct rf_readmaps *all, uint32_t map, struct rf_reads *reads, rf_epoch first,
                                     rf_epoch last)
{
    union rf_readmap *m = rf_readmap_at(all, map);
    for (uint32_t i = 0; i < rf_readmap_places(m, reads); i++) {
        rf_epoch epoch = rf_readmap_read(m, reads, i).epoch;
        if (!epoch || epoch - first > last - first)
            continue;
        if (rf_reads_in_table(reads)) {
            m->many.reads[i].epoch = 0;
            rf_readmap_rehash(all, m, reads, m->many.cap); /* others may have been put behind it */
        } else {
            uint32_t end = (--reads->filter) & RF_READS_COUNT;
            m->few.epochs[i] = m->few.epochs[end];
            m->few.notes[i] = m->few.notes[end];
        }
        return;
    }
}

/* The copy has the same struct rf_reads. */
static inline uint32_t rf_readmap_copy(struct rf_readmaps *all, uint32_t from, const struct rf_reads *reads)
{
    uint32_t map = rf_readmap_new(all);
    union rf_readmap *m = rf_readmap_at(all, map);
    *m = *rf_readmap_at(all, from);
    if (rf_reads_in_table(reads)) {
        m->many.reads = rf_alloc(all->memory, m->many.cap * sizeof *m->many.reads);
        memcpy(m->many.reads, rf_readmap_at(all, from)->many.reads, m->many.cap * sizeof *m->many.reads);
    }
    return map;
}

#endif
