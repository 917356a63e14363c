/* A hash table that only grows. Whoever looks something up that is there takes no lock: the index that it loads may be an old one,
 * which lacks at most what was added since; then it looks again under the lock. */
#include "guest/depot.h"

#include "core/map.h"
#include "guest/memory.h"
#include "guest/planes.h"
#include "guest/spin.h"
#include "guest/start.h"
#include "guest/threads.h"

struct entry {
    uint64_t what, below;
};

struct index {
    uint32_t mask;
    uint32_t notes[];
};

#define ENTRIES ((struct entry *)RF_DEPOT)
#define ENTRY_LIMIT (RF_DEPOT_SIZE / sizeof(struct entry))

static struct index *notes_index; /* replaced under the lock when it is half full; old ones stay, for those who still read them */
static uint32_t depot_lock;
static uint32_t note_count = 1; /* note 0 is none */

void rf_depot_begin(void)
{
    size_t places = 4096;
    notes_index = rf_take(sizeof *notes_index + places * sizeof(uint32_t));
    notes_index->mask = (uint32_t)places - 1;
}

static uint32_t hash_of(uint64_t what, uint64_t below)
{
    return (uint32_t)(rf_hash(what ^ rf_hash(below)) >> 8);
}

static uint32_t *find(struct index *index, uint64_t what, uint64_t below)
{
    for (uint32_t at = hash_of(what, below);; at++) {
        uint32_t *place = &index->notes[at & index->mask];
        uint32_t note = __atomic_load_n(place, __ATOMIC_ACQUIRE); /* pairs with the store that published the entry */
        if (!note || (ENTRIES[note].what == what && ENTRIES[note].below == below))
            return place;
    }
}

static void grow_index(void)
{
    struct index *old = notes_index;
    size_t places = 2 * ((size_t)old->mask + 1);
    struct index *larger = rf_take(sizeof *larger + places * sizeof(uint32_t));
    larger->mask = (uint32_t)places - 1;
    for (uint32_t i = 1; i < note_count; i++)
        *find(larger, ENTRIES[i].what, ENTRIES[i].below) = i;
    __atomic_store_n(&notes_index, larger, __ATOMIC_RELEASE);
}

uint32_t rf_depot_put(uint64_t what, uint64_t below)
{
    uint32_t note = *find(__atomic_load_n(&notes_index, __ATOMIC_ACQUIRE), what, below);
    if (note)
        return note;
    struct rf_self *self = rf_hot.self;
    bool mine = rf_busy_enter(self); /* as guest/spin.h demands; those who make a note for a report are not */
    rf_spin_lock(&depot_lock);
    if (note_count > notes_index->mask / 2)
        grow_index();
    uint32_t *place = find(notes_index, what, below);
    if (!*place && note_count < ENTRY_LIMIT) { /* a depot of a quarter of a billion stacks is full: those after it have none */
        ENTRIES[note_count] = (struct entry){ what, below };
        __atomic_store_n(place, note_count++, __ATOMIC_RELEASE);
    }
    note = *place;
    rf_spin_unlock(&depot_lock);
    rf_busy_leave(self, mine);
    return note;
}

/* Frames from the innermost known one upwards get their nodes. */
uint32_t rf_depot_node(struct rf_self *self)
{
    struct rf_frame *frame = rf_hot.top;
    if (__builtin_expect(frame < self->frames, 0)) /* functions were left that had been entered before the thread was known */
        rf_hot.top = frame = self->frames;
    while (frame > self->frames && !frame[-1].node)
        frame--;
    uint32_t node = frame > self->frames ? frame[-1].node : 0;
    for (; frame < rf_hot.top; frame++)
        frame->node = node = rf_depot_put(frame->pc & ((UINT64_C(1) << RF_PC_BITS) - 1), node);
    return node;
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
        pcs[depth++] = ENTRIES[note].what & ((UINT64_C(1) << RF_PC_BITS) - 1);
        note = (uint32_t)ENTRIES[note].below;
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
    return ENTRIES[note].what >> RF_PC_BITS & ((1u << RF_FLAG_BITS) - 1);
}

size_t rf_note_size(uint32_t note)
{
    return ENTRIES[note].what >> (RF_PC_BITS + RF_FLAG_BITS);
}

uint32_t rf_note_locks(uint32_t note)
{
    return (uint32_t)(ENTRIES[note].below >> 32);
}
