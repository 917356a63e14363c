/* Hash tables that only grow.
 *
 * 1. There are TABLES of them, each with a lock and with entries of its own: threads that add at once seldom meet. A node is in the table
 *    that its hash says; an access is in that of its stack's node (chunk_tables), so that it can lie beside it.
 * 2. Whoever looks something up that is there takes no lock: the index that it loads may be an old one, which lacks at most what was added
 *    since; then it looks again under the lock.
 * 3. The hash of a node is made of all frames up to it, and nothing else, and is kept in the upper half of `below`. So the places of all
 *    runs of a stack are known before the first of them is looked up, and are on their way to the cache meanwhile.
 */
#include "guest/depot.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "core/map.h"
#include "guest/memory.h"
#include "guest/planes.h"
#include "guest/spin.h"
#include "guest/start.h"
#include "guest/threads.h"

struct entry {
    uint64_t what, below;
};

/* A slot of the index: a note, and above it the upper half of its hash. */
struct index {
    uint32_t mask;
    uint64_t slots[];
};

#define HUGE ((size_t)2 << 20) /* an index from here on has huge pages */
#define PAGE ((uintptr_t)4096)
#define NOTE(slot) ((uint32_t)(slot))
#define TAG(hash) ((uint32_t)((hash) >> 32))

#define ENTRIES ((struct entry *)RF_DEPOT)
#define ENTRY_LIMIT (RF_DEPOT_SIZE / sizeof(struct entry))
#define TABLES 16u
#define CHUNK 1024u /* entries that a table takes at once */
#define PLACES_FIRST 256u

static struct table {
    uint32_t lock;
    uint32_t next, end;  /* the free ones of its chunk */
    uint32_t last_entry; /* where the last one begins. Read without the lock */
    uint32_t count;      /* of those in the index */
    struct index *index; /* replaced under the lock when it gets full; old ones stay mapped, for those who still read them */
} __attribute__((aligned(64))) tables[TABLES];

static uint32_t chunks;                           /* taken, by atomic additions */
static uint8_t chunk_tables[ENTRY_LIMIT / CHUNK]; /* whose each is. Written before an entry of it is known */

void rf_depot_begin(void)
{
    for (unsigned i = 0; i < TABLES; i++) {
        struct index *index = rf_take(sizeof *index + PLACES_FIRST * sizeof(uint64_t));
        index->mask = PLACES_FIRST - 1;
        tables[i].index = index;
    }
}

static bool is_run(const struct entry *entry)
{
    return entry->what <= RF_RUN;
}

/* Of a stack; what is none has a size (invariant 3). */
static bool is_node(const struct entry *entry)
{
    return !(entry->what >> (RF_PC_BITS + RF_FLAG_BITS));
}

/* How many entries it takes. */
static unsigned units_of(const struct entry *entry)
{
    return is_run(entry) ? 1 + ((unsigned)entry->what + 1) / 2 : 1;
}

static bool same_entry(const struct entry *a, const struct entry *b)
{
    if (a->what != b->what || a->below != b->below)
        return false;
    for (unsigned i = 1; i < units_of(a); i++)
        if (a[i].what != b[i].what || a[i].below != b[i].below)
            return false;
    return true;
}

static uint64_t slot_of(uint32_t note, uint64_t hash)
{
    return (uint64_t)TAG(hash) << 32 | note;
}

/* Its place, and its note: 0, and where it is to come, if it is not there. Who has no lock may not look at the place again: by then
 * somebody may have put another one there. */
static uint64_t *find(struct index *index, const struct entry *wanted, uint64_t hash, uint32_t *note)
{
    for (uint32_t at = TAG(hash);; at++) {
        uint64_t *place = &index->slots[at & index->mask];
        uint64_t slot = __atomic_load_n(place, __ATOMIC_ACQUIRE); /* pairs with the store that published the entry */
        if (slot && (TAG(slot) != TAG(hash) || !same_entry(&ENTRIES[NOTE(slot)], wanted)))
            continue;
        *note = NOTE(slot);
        return place;
    }
}

/* The access that came right after its stack, which had just become known, is found beside it and nowhere else: where stacks are many,
 * most have one access each. 0: there is none, or it is another. Without the lock it may be missed while it is being written. */
static uint32_t find_beside(const struct entry *wanted)
{
    uint32_t node = (uint32_t)wanted->below;
    if (is_node(wanted) || !node || node + units_of(&ENTRIES[node]) >= ENTRY_LIMIT)
        return 0;
    node += units_of(&ENTRIES[node]);
    const struct entry *beside = &ENTRIES[node];
    bool same = __atomic_load_n(&beside->below, __ATOMIC_ACQUIRE) == wanted->below &&
                __atomic_load_n(&beside->what, __ATOMIC_RELAXED) == wanted->what;
    return same ? node : 0;
}

/* Its stack is the entry before it. */
static bool is_beside(const struct entry *entry, uint32_t before)
{
    return !is_node(entry) && before && (uint32_t)entry->below == before;
}

/* A new page that is read first is mapped twice, and the second time interrupts all cores. */
static void touch(void *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PAGE)
        ((volatile char *)memory)[at] = 0;
}

/* Under the table's lock, like all below that changes one. */
static void grow_index(struct table *table)
{
    struct index *old = table->index, *larger;
    size_t places = 2 * ((size_t)old->mask + 1), bytes = sizeof *larger + places * sizeof(uint64_t);
    larger = rf_take(bytes);
    if (bytes > HUGE) /* all of it will be used, in no order */
        RF_SYSCALL(SYS_madvise, larger, bytes, MADV_HUGEPAGE);
    touch(larger, bytes);
    larger->mask = (uint32_t)places - 1;
    for (uint32_t i = 0; i <= old->mask; i++) {
        uint32_t at = TAG(old->slots[i]);
        if (!old->slots[i])
            continue;
        while (larger->slots[at & larger->mask]) /* they are all different */
            at++;
        larger->slots[at & larger->mask] = old->slots[i];
    }
    __atomic_store_n(&table->index, larger, __ATOMIC_RELEASE);
    /* Who still reads the old one finds nothing there, and looks again under the lock. Its beginning, with the mask, stays. */
    uintptr_t from = ((uintptr_t)old | (PAGE - 1)) + 1,
              to = (uintptr_t)&old->slots[old->mask + (size_t)1] & ~(uintptr_t)(PAGE - 1);
    if (to > from)
        RF_SYSCALL(SYS_madvise, from, to - from, MADV_DONTNEED);
}

/* 0: the depot, of a quarter of a billion entries, is full: stacks after that have none. */
static uint32_t add_entry(struct table *table, const struct entry *wanted, unsigned units)
{
    if (table->end - table->next < units) {
        uint32_t chunk = __atomic_fetch_add(&chunks, 1, __ATOMIC_RELAXED);
        if (chunk >= ENTRY_LIMIT / CHUNK) {
            __atomic_store_n(&chunks, ENTRY_LIMIT / CHUNK, __ATOMIC_RELAXED);
            return 0;
        }
        chunk_tables[chunk] = (uint8_t)(table - tables);
        table->next = chunk * CHUNK + !chunk; /* note 0 is none */
        table->end = (chunk + 1) * CHUNK;
        touch(&ENTRIES[chunk * CHUNK], CHUNK * sizeof(struct entry));
    }
    uint32_t note = table->next;
    for (unsigned i = 0; i < units; i++) {
        ENTRIES[note + i].what = wanted[i].what;
        __atomic_store_n(&ENTRIES[note + i].below, wanted[i].below, __ATOMIC_RELEASE); /* find_beside() */
    }
    __atomic_store_n(&table->last_entry, note, __ATOMIC_RELAXED);
    table->next += units;
    return note;
}

static uint32_t put_entry(struct table *table, const struct entry *wanted, uint64_t hash)
{
    uint32_t note = 0;
    if (!is_beside(wanted,
                   __atomic_load_n(&table->last_entry, __ATOMIC_RELAXED))) /* else it is not there; the lock makes sure */
        find(__atomic_load_n(&table->index, __ATOMIC_ACQUIRE), wanted, hash, &note);
    if (note)
        return note;
    struct rf_self *self = rf_hot.self;
    bool mine = rf_busy_enter(self); /* as guest/spin.h demands; those who make a note for a report are not */
    rf_spin_lock(&table->lock);
    if (table->count > table->index->mask / 3 * 2)
        grow_index(table);
    unsigned units = units_of(wanted);
    if (is_beside(wanted, table->last_entry) && table->next < table->end) { /* none before it can have had that stack */
        note = add_entry(table, wanted, units);
    } else if (!(note = find_beside(wanted))) {
        uint64_t *place = find(table->index, wanted, hash, &note);
        if (!note && (note = add_entry(table, wanted, units))) {
            __atomic_store_n(place, slot_of(note, hash), __ATOMIC_RELEASE);
            table->count++;
        }
    }
    rf_spin_unlock(&table->lock);
    rf_busy_leave(self, mine);
    return note;
}

uint32_t rf_depot_put(uint64_t what, uint64_t below)
{
    struct entry wanted = { what, below };
    uint32_t node = (uint32_t)below, note = find_beside(&wanted);
    if (note)
        return note;
    uint64_t hash = rf_hash(what ^ rf_hash(below));
    return put_entry(&tables[node ? chunk_tables[node / CHUNK] : hash % TABLES], &wanted, hash);
}

/* Frames above a node, ready to be put. */
struct run {
    struct entry entries[1 + RF_RUN / 2]; /* the first one lacks the note of what is below */
    uint64_t hash;
};

#define MIX_EVEN UINT64_C(0xff51afd7ed558ccd)
#define MIX_ODD UINT64_C(0xc4ceb9fe1a85ec53)

/* `tag`: of the hash of what is below. Returns that of the run. */
static uint32_t make_run(struct run *run, const struct rf_frame *frames, unsigned count, uint32_t tag)
{
    const uint64_t pc_mask = (UINT64_C(1) << RF_PC_BITS) - 1;
    uint64_t hash = rf_hash(tag + ((uint64_t)count << 32));
    for (unsigned i = 0; i < count; i += 2) {
        uint64_t even = frames[i].pc & pc_mask, odd = i + 1 < count ? frames[i + 1].pc & pc_mask : 0;
        hash = rf_hash(hash ^ even * MIX_EVEN ^ odd * MIX_ODD);
        run->entries[1 + i / 2] = (struct entry){ even, odd };
    }
    run->hash = hash;
    run->entries[0].what = count == 1 ? run->entries[1].what : count;
    return TAG(hash);
}

static struct table *table_of_run(const struct run *run)
{
    return &tables[run->hash % TABLES];
}

static void fetch_slot(const struct run *run)
{
    const struct index *index = __atomic_load_n(&table_of_run(run)->index, __ATOMIC_ACQUIRE);
    __builtin_prefetch(&index->slots[TAG(run->hash) & index->mask]);
}

static void fetch_entry(const struct run *run)
{
    const struct index *index = __atomic_load_n(&table_of_run(run)->index, __ATOMIC_ACQUIRE);
    uint64_t slot = __atomic_load_n(&index->slots[TAG(run->hash) & index->mask], __ATOMIC_RELAXED);
    if (TAG(slot) == TAG(run->hash))
        __builtin_prefetch(&ENTRIES[NOTE(slot)]);
}

static uint32_t put_run(struct run *run, uint32_t below)
{
    run->entries[0].below = (uint64_t)TAG(run->hash) << 32 | below;
    return put_entry(table_of_run(run), run->entries, run->hash);
}

#define RUNS_AT_ONCE 8u

/* Whole runs from the innermost known one upwards get their nodes, and what is left of the last one (guest/depot.h, 4). */
static uint32_t put_stack(struct rf_self *self)
{
    struct run runs[RUNS_AT_ONCE];
    size_t depth = (size_t)(rf_hot.top - self->frames), known = (depth - 1) / RF_RUN * RF_RUN;
    while (known && !self->frames[known - 1].node)
        known -= RF_RUN;
    uint32_t node = known ? self->frames[known - 1].node : 0, tag = node ? (uint32_t)(ENTRIES[node].below >> 32) : 0;
    while (known < depth) {
        unsigned count = 0;
        for (size_t at = known; at < depth && count < RUNS_AT_ONCE; at += RF_RUN, count++) {
            tag = make_run(&runs[count], self->frames + at, depth - at < RF_RUN ? (unsigned)(depth - at) : RF_RUN, tag);
            fetch_slot(&runs[count]);
        }
        for (unsigned i = 0; count > 1 && i < count; i++)
            fetch_entry(&runs[i]);
        for (unsigned i = 0; i < count; i++) {
            node = put_run(&runs[i], node);
            known = known + RF_RUN < depth ? known + RF_RUN : depth;
            self->frames[known - 1].node = node;
        }
    }
    return node;
}

void rf_depot_thread_end(struct rf_self *self)
{
    if (self->nodes)
        rf_give(self->nodes, (self->nodes_mask + 1) * sizeof *self->nodes);
    self->nodes = NULL;
}

#define KNOWN_AT_ONCE 8 /* frames above a known one */

static struct rf_known_node *known_node(const struct rf_self *self, uint64_t pcs, uint32_t below)
{
    return &self->nodes[rf_hash(pcs + ((uint64_t)below << 32)) >> 32 & self->nodes_mask];
}

/* Four times as many, or the first ones. */
static void more_nodes(struct rf_self *self)
{
    struct rf_known_node *old = self->nodes;
    uint32_t count = old ? self->nodes_mask + 1 : 0, all = count ? 4 * count : RF_KNOWN_NODES;
    self->nodes = rf_take(all * sizeof *old);
    self->nodes_mask = all - 1;
    self->nodes_missed = 0;
    for (uint32_t i = 0; i < count; i++)
        if (old[i].pcs)
            *known_node(self, old[i].pcs, old[i].below) = old[i];
    rf_give(old, count * sizeof *old);
}

/* Functions are called again and again from one place of one that is known already, directly or by others that accessed nothing yet: those
 * have no node, and are known together, by a hash of their places (one alone by its place). Who is not busy, so that a handler may come in
 * between, does without. */
static __attribute__((noinline)) uint32_t new_node(struct rf_self *self)
{
    struct rf_frame *frame = rf_hot.top - 1, *first = frame;
    if (!self->busy || (!self->nodes && ++self->nodes_missed < RF_KNOWN_NODES))
        return put_stack(self);
    if (!self->nodes || (self->nodes_missed > 4 * self->nodes_mask && self->nodes_mask + 1 < RF_KNOWN_NODES_MOST))
        more_nodes(self);
    uint64_t pcs = frame->pc;
    while (first > self->frames && !first[-1].node && frame - first < KNOWN_AT_ONCE) /* functions that only call others */
        pcs = pcs * MIX_EVEN + (--first)->pc;
    uint32_t below = first > self->frames ? first[-1].node : 0;
    if (first > self->frames && !below)
        return put_stack(self);
    struct rf_known_node *known = known_node(self, pcs, below);
    if (known->pcs != pcs || known->below != below) {
        self->nodes_missed++;
        *known = (struct rf_known_node){ pcs, below, put_stack(self) };
    }
    return frame->node = known->node;
}

uint32_t rf_depot_node(struct rf_self *self)
{
    if (__builtin_expect(rf_hot.top <= self->frames,
                         0)) { /* functions were left that had been entered before the thread was known */
        rf_hot.top = self->frames;
        return 0;
    }
    uint32_t node = rf_hot.top[-1].node;
    return node ? node : new_node(self);
}

uint32_t rf_note_here(uintptr_t pc, unsigned flags, size_t size)
{
    struct rf_self *self = rf_hot.self;
    if (!self)
        return 0;
    return rf_depot_put(rf_access_key(pc, flags, size ? size : 1), (uint64_t)self->locks << 32 | rf_depot_node(self));
}

unsigned rf_note_stack(uint32_t note, uintptr_t *pcs, unsigned max)
{
    unsigned depth = 0;
    while (note && depth < max) {
        const struct entry *entry = &ENTRIES[note];
        if (!is_run(entry))
            pcs[depth++] = entry->what & ((UINT64_C(1) << RF_PC_BITS) - 1);
        for (unsigned i = is_run(entry) ? (unsigned)entry->what : 0; i-- > 0 && depth < max;)
            pcs[depth++] = i % 2 ? entry[1 + i / 2].below : entry[1 + i / 2].what;
        note = (uint32_t)entry->below;
    }
    return depth;
}

uint32_t rf_note_of_kind(uint32_t note, bool writes)
{
    uint64_t bit = (uint64_t)RF_A_WRITE << RF_PC_BITS;
    if (!note || !!(ENTRIES[note].what & bit) == writes)
        return note;
    return rf_depot_put(ENTRIES[note].what ^ bit, ENTRIES[note].below);
}

unsigned rf_note_flags(uint32_t note)
{
    unsigned flags = ENTRIES[note].what >> RF_PC_BITS & ((1u << RF_FLAG_BITS) - 1);
    return (flags & RF_NOTED_TXN) == RF_NOTED_TXN ? (flags & ~RF_NOTED_TXN) | RF_A_TXN : flags;
}

size_t rf_note_size(uint32_t note)
{
    return ENTRIES[note].what >> (RF_PC_BITS + RF_FLAG_BITS);
}

uint32_t rf_note_locks(uint32_t note)
{
    return (uint32_t)(ENTRIES[note].below >> 32);
}

uint32_t rf_note_with_locks(uint32_t note, uint32_t locks)
{
    if (!note || rf_note_locks(note) == locks)
        return note;
    return rf_depot_put(ENTRIES[note].what, (uint64_t)locks << 32 | (uint32_t)ENTRIES[note].below);
}
