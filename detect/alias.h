/* Dynamic alias analysis (Biswas et al.: Lightweight data race detection for production runs, section 7.2): pairs of
 * sites at which different threads touched the same location. No order is looked at, and no lock: the pairs are what
 * might race, and what litehb can be asked to look at, one by one.
 *
 * 1. The paper reports <s1, s2> iff accesses at s1 and s2 by threads T1 != T2 touched one location. Two reads cannot
 *    race, so here at least one of the two accesses must write: the pairs are potential races.
 * 2. Pairs are unordered, and each is reported once, with the two accesses that showed it first; it is not one race a
 *    variable. An access that shows several new pairs reports one each time it is asked (EVERY_RACE in
 *    replay/instance.inc).
 * 3. A cell has one entry for each site and kind of access, with the first two threads that came: whatever thread comes
 *    later, one of the two is another one. So entries are bounded by sites, and an entry with two threads has met all the
 *    others.
 * 4. Accesses without a site have site 0, like any other.
 */
#ifndef RF_DETECT_ALIAS_H
#define RF_DETECT_ALIAS_H

#include "core/detector.h"
#include "core/map.h"

struct al_entry {
    uint64_t key;       /* the site, and in the lowest bit whether it writes */
    uint32_t thread[2]; /* RF_UNKNOWN: nobody yet */
    uint32_t note[2];
};

struct al_cell {
    struct al_entry *entries; /* sorted by key */
    uint32_t count, cap;
};

struct al_thread {
    uint32_t index;
};

struct al {
    struct rf_engine engine;
    struct al_thread **threads;
    uint32_t thread_cap;
    struct rf_map pairs; /* the smaller site above the larger -> 1 */
    uint64_t entry_count;
};

static inline void al_init(struct al *d)
{
    rf_map_init(&d->pairs, d->engine.memory);
}

static inline struct al_thread *al_thread_at(struct al *d, uint32_t thread)
{
    d->threads = rf_grow(d->engine.memory, d->threads, &d->thread_cap, (size_t)thread + 1, sizeof *d->threads);
    if (!d->threads[thread]) {
        d->threads[thread] = rf_alloc(d->engine.memory, sizeof **d->threads);
        d->threads[thread]->index = thread;
    }
    return d->threads[thread];
}

/* Where the key is, or belongs. */
static inline uint32_t al_place(const struct al_cell *cell, uint64_t key)
{
    uint32_t low = 0, high = cell->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (cell->entries[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Is this pair new? Then it is not any more. */
static inline bool al_new_pair(struct al *d, uint32_t a, uint32_t b)
{
    uint64_t *known = rf_map_at(&d->pairs, a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a);
    bool is_new = !*known;
    *known = 1;
    return is_new;
}

/* A new pair with an entry of another thread. */
static inline bool al_meet(struct al *d, const struct al_cell *cell, uint32_t thread, uint64_t key)
{
    for (uint32_t i = 0; i < cell->count; i++) {
        const struct al_entry *entry = &cell->entries[i];
        unsigned other = entry->thread[0] == thread;
        if (!((key | entry->key) & 1) || entry->thread[other] == RF_UNKNOWN ||
            !al_new_pair(d, (uint32_t)(key >> 1), (uint32_t)(entry->key >> 1)))
            continue;
        d->engine.first = (struct rf_side){ .thread = entry->thread[other],
                                            .note = entry->note[other],
                                            .known = true,
                                            .writes = entry->key & 1,
                                            .predictive = true,
                                            .locks = RF_ALL_LOCKS };
        return true;
    }
    return false;
}

static inline void al_record(struct al *d, struct al_cell *cell, uint32_t at, uint64_t key, uint32_t thread, uint32_t note)
{
    bool known = at < cell->count && cell->entries[at].key == key;
    if (!known) {
        cell->entries = rf_grow(d->engine.memory, cell->entries, &cell->cap, cell->count + 1, sizeof *cell->entries);
        memmove(cell->entries + at + 1, cell->entries + at, (cell->count++ - at) * sizeof *cell->entries);
        cell->entries[at] = (struct al_entry){ .key = key, .thread = { RF_UNKNOWN, RF_UNKNOWN } };
        d->entry_count++;
    }
    cell->entries[at].thread[known] = thread;
    cell->entries[at].note[known] = note;
}

static inline bool al_access(struct al *d, const struct al_thread *t, struct al_cell *cell, uint64_t key, uint32_t note)
{
    uint32_t at = al_place(cell, key);
    if (at < cell->count && cell->entries[at].key == key &&
        (cell->entries[at].thread[0] == t->index || cell->entries[at].thread[1] != RF_UNKNOWN))
        return false; /* it has met all that is here */
    if (al_meet(d, cell, t->index, key))
        return true; /* and is asked again; it is recorded when it has met all */
    al_record(d, cell, at, key, t->index, note);
    return false;
}

static inline bool al_read(struct al *d, struct al_thread *t, struct al_cell *cell, uint32_t site, uint32_t note)
{
    return al_access(d, t, cell, (uint64_t)site << 1, note);
}

static inline bool al_write(struct al *d, struct al_thread *t, struct al_cell *cell, uint32_t site, uint32_t note)
{
    return al_access(d, t, cell, (uint64_t)site << 1 | 1, note);
}

static inline void al_sync(struct al *d, struct al_thread *t, const struct rf_event *event)
{
    (void)d, (void)t, (void)event;
}

static inline void al_commit_end(struct al *d, struct al_thread *t, const struct rf_event *event)
{
    (void)d, (void)t, (void)event;
}

static inline void al_copy(struct al *d, struct al_cell *to, const struct al_cell *from)
{
    *to = (struct al_cell){ .count = from->count };
    to->entries = rf_grow(d->engine.memory, NULL, &to->cap, from->count, sizeof *to->entries);
    if (from->count)
        memcpy(to->entries, from->entries, from->count * sizeof *to->entries);
}

static inline void al_clear(struct al *d, struct al_cell *cell)
{
    rf_free(d->engine.memory, cell->entries, cell->cap * sizeof *cell->entries);
    *cell = (struct al_cell){ 0 };
}

static inline bool al_must_widen(const struct al *d)
{
    (void)d;
    return false;
}

static inline const struct rf_locksets *al_locksets(const struct al *d)
{
    (void)d;
    return NULL;
}

static inline rf_lockset al_held(const struct al_thread *t, bool write)
{
    (void)t, (void)write;
    return RF_ALL_LOCKS;
}

static inline void al_statistics(const struct al *d, rf_statistic_fn *emit, void *context)
{
    emit(context, "pairs", d->pairs.count);
    emit(context, "entries", d->entry_count);
}

#endif
