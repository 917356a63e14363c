/* A hash table that only grows. Whoever looks something up that is there takes no lock: the index that it loads may be an old one,
 * which lacks at most what was added since; then it looks again under the lock. */
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

/* A slot of the index: a note, and above it four bits of what is there, so that few entries are looked at in vain. */
struct index {
    uint32_t mask;
    uint32_t slots[];
};

#define NOTE_BITS 28
#define HUGE ((size_t)4 << 20) /* an index from here on has huge pages */
#define NOTE(slot) ((slot) & ((1u << NOTE_BITS) - 1))

#define ENTRIES ((struct entry *)RF_DEPOT)
#define ENTRY_LIMIT (RF_DEPOT_SIZE / sizeof(struct entry))
_Static_assert(ENTRY_LIMIT <= UINT64_C(1) << NOTE_BITS, "slots");

static struct index *notes_index; /* replaced under the lock when it is half full; old ones stay, for those who still read them */
static uint32_t depot_lock;
static uint32_t entry_end = 1; /* note 0 is none */
static uint32_t last_entry;    /* where the last one begins */
static uint32_t note_count;    /* of those in the index */

void rf_depot_begin(void)
{
    size_t places = 4096;
    notes_index = rf_take(sizeof *notes_index + places * sizeof(uint32_t));
    notes_index->mask = (uint32_t)places - 1;
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

static uint64_t entry_hash(const struct entry *entry)
{
    uint64_t hash = rf_hash(entry->what ^ rf_hash(entry->below));
    for (unsigned i = 1; i < units_of(entry); i++)
        hash = rf_hash(entry[i].what ^ rf_hash(hash ^ entry[i].below));
    return hash;
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

static uint32_t slot_of(uint32_t note, uint64_t hash)
{
    return note | (uint32_t)(hash >> 60) << NOTE_BITS;
}

static uint32_t *find(struct index *index, const struct entry *wanted, uint64_t hash)
{
    for (uint32_t at = (uint32_t)(hash >> 8);; at++) {
        uint32_t *place = &index->slots[at & index->mask];
        uint32_t slot = __atomic_load_n(place, __ATOMIC_ACQUIRE); /* pairs with the store that published the entry */
        if (!slot || (slot == slot_of(NOTE(slot), hash) && same_entry(&ENTRIES[NOTE(slot)], wanted)))
            return place;
    }
}

/* The access that came right after its stack, which had just become known, is found beside it and nowhere else: where stacks are many,
 * most have one access each. 0: there is none, or it is another. Without the lock it may be missed while it is being written. */
static uint32_t find_beside(const struct entry *wanted)
{
    uint32_t node = (uint32_t)wanted->below;
    if (is_node(wanted) || !node)
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

static void grow_index(void)
{
    struct index *old = notes_index, *larger;
    size_t places = 2 * ((size_t)old->mask + 1), bytes = sizeof *larger + places * sizeof(uint32_t);
    larger = rf_take(bytes);
    if (bytes > HUGE) /* all of it will be used, in no order */
        RF_SYSCALL(SYS_madvise, larger, bytes, MADV_HUGEPAGE);
    larger->mask = (uint32_t)places - 1;
    for (uint32_t i = 1, before = 0; i < entry_end; before = i, i += units_of(&ENTRIES[i])) {
        if (is_beside(&ENTRIES[i], before))
            continue;
        uint64_t hash = entry_hash(&ENTRIES[i]);
        uint32_t at = (uint32_t)(hash >> 8);
        while (larger->slots[at & larger->mask]) /* they are all different */
            at++;
        larger->slots[at & larger->mask] = slot_of(i, hash);
    }
    __atomic_store_n(&notes_index, larger, __ATOMIC_RELEASE);
}

/* Under the lock. */
static uint32_t add_entry(const struct entry *wanted, unsigned units)
{
    for (unsigned i = 0; i < units; i++) {
        ENTRIES[entry_end + i].what = wanted[i].what;
        __atomic_store_n(&ENTRIES[entry_end + i].below, wanted[i].below, __ATOMIC_RELEASE); /* find_beside() */
    }
    __atomic_store_n(&last_entry, entry_end, __ATOMIC_RELAXED);
    entry_end += units;
    return last_entry;
}

static uint32_t put_entry(const struct entry *wanted)
{
    uint32_t note = find_beside(wanted);
    if (note)
        return note;
    uint64_t hash = entry_hash(wanted);
    if (!is_beside(wanted, __atomic_load_n(&last_entry, __ATOMIC_RELAXED))) /* else it is not there; the lock makes sure */
        note = NOTE(*find(__atomic_load_n(&notes_index, __ATOMIC_ACQUIRE), wanted, hash));
    if (note)
        return note;
    struct rf_self *self = rf_hot.self;
    bool mine = rf_busy_enter(self); /* as guest/spin.h demands; those who make a note for a report are not */
    rf_spin_lock(&depot_lock);
    if (note_count > notes_index->mask / 2)
        grow_index();
    unsigned units = units_of(wanted);
    bool room = entry_end + units <= ENTRY_LIMIT; /* a depot of a quarter of a billion entries is full: stacks after it have none */
    if (is_beside(wanted, last_entry)) { /* none before it can have had that stack */
        note = room ? add_entry(wanted, units) : 0;
    } else if (!(note = find_beside(wanted))) {
        uint32_t *place = find(notes_index, wanted, hash);
        if (!*place && room) {
            __atomic_store_n(place, slot_of(add_entry(wanted, units), hash), __ATOMIC_RELEASE);
            note_count++;
        }
        note = NOTE(*place);
    }
    rf_spin_unlock(&depot_lock);
    rf_busy_leave(self, mine);
    return note;
}

uint32_t rf_depot_put(uint64_t what, uint64_t below)
{
    return put_entry(&(struct entry){ what, below });
}

/* The node of some frames above a node. */
static uint32_t put_frames(const struct rf_frame *frames, unsigned count, uint32_t below)
{
    const uint64_t pc_mask = (UINT64_C(1) << RF_PC_BITS) - 1;
    struct entry run[1 + RF_RUN / 2] = { { .what = count, .below = below } };
    if (count == 1) {
        run[0].what = frames[0].pc & pc_mask;
        return put_entry(run);
    }
    for (unsigned i = 0; i < count; i++) {
        uint64_t pc = frames[i].pc & pc_mask;
        *(i % 2 ? &run[1 + i / 2].below : &run[1 + i / 2].what) = pc;
    }
    return put_entry(run);
}

/* Whole runs from the innermost known one upwards get their nodes, and what is left of the last one (invariant 4). */
static __attribute__((noinline)) uint32_t new_node(struct rf_self *self)
{
    size_t depth = (size_t)(rf_hot.top - self->frames), last = (depth - 1) / RF_RUN * RF_RUN, known = last;
    while (known && !self->frames[known - 1].node)
        known -= RF_RUN;
    uint32_t node = known ? self->frames[known - 1].node : 0;
    for (; known < last; known += RF_RUN)
        self->frames[known + RF_RUN - 1].node = node = put_frames(self->frames + known, RF_RUN, node);
    return rf_hot.top[-1].node = put_frames(self->frames + last, (unsigned)(depth - last), node);
}

uint32_t rf_depot_node(struct rf_self *self)
{
    if (__builtin_expect(rf_hot.top <= self->frames, 0)) { /* functions were left that had been entered before the thread was known */
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
