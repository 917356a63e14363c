/* Which slots are still named by a history, and which owners of them: so that what nobody names can be used again, or forgotten.
 *
 * 1. A goroutine that has ended puts its epochs nowhere any more; they only disappear. Where they are copied (a history that is split)
 *    they stay in the same granule, under its lock. So a look at one granule after the other, while all others run on, sees at least
 *    what is named afterwards of goroutines that had ended before.
 * 2. A clock may know a slot that is given to a new owner: only up to the last time of an old one, and the new one's are later.
 * 3. It is run by who starts a goroutine, under slots_lock.
 */
#ifndef RF_GO_SWEEP_H
#define RF_GO_SWEEP_H

#include "go/objects.h"

static struct {
    uintptr_t from, to;
} ranges[1024]; /* that have cells; under ranges_lock */
static unsigned range_count;
static uint32_t ranges_lock;

static uint32_t *sweep_first; /* by slot: the earliest time that is named; UINT32_MAX: none */

static inline void sweep_epoch(rf_epoch epoch)
{
    uint32_t slot = epoch_slot(epoch);
    if (epoch && epoch_time(epoch) < sweep_first[slot])
        sweep_first[slot] = epoch_time(epoch);
}

static void sweep_part(uint64_t w, uint64_t r)
{
    sweep_epoch(w & ~FLAGS);
    if (!(r & RF_TAG)) {
        sweep_epoch(r);
        return;
    }
    const struct readers *readers = readers_at((uint32_t)r);
    uint32_t places = readers->count == READERS_MANY ? readers->table->cap : readers->count;
    for (uint32_t i = 0; i < places; i++)
        sweep_epoch(readers->count == READERS_MANY ? readers->table->at[i].epoch : readers->epochs[i]);
}

static void sweep_cell(struct cell *cell)
{
    if (!(__atomic_load_n(&cell->w, __ATOMIC_RELAXED) | __atomic_load_n(&cell->r, __ATOMIC_RELAXED)))
        return;
    uint64_t w = cell_lock(cell);
    sweep_part(w, cell->r);
    struct extra *extra = w & EXTRA ? *extra_of(cell) : NULL;
    if (w & SPLIT) {
        if (extra->state == REST_IS_ONE)
            sweep_part(extra->rest.w, extra->rest.r);
        for (unsigned i = 0; extra->state == REST_IS_BYTES && i < 7; i++)
            sweep_part(extra->bytes[i].w, extra->bytes[i].r);
    }
    if (w & OBJECT) {
        spin_lock(&extra->object.lock);
        for (const struct object *object = &extra->object; object; object = object->next)
            for (uint32_t i = 0; i < stamp_count(object); i++)
                sweep_epoch(stamp_at(object, i).epoch);
        spin_unlock(&extra->object.lock);
    }
    cell_unlock(cell, w);
}

static void sweep_range(uintptr_t from, uintptr_t to)
{
    for (struct cell *cell = cell_of(from), *end = cell + (to - from) / RF_GRANULE; cell < end;) {
        struct cell *patch_end = (struct cell *)(((uintptr_t)cell | ((UINT64_C(1) << PATCH_BITS) - 1)) + 1);
        patch_end = patch_end < end ? patch_end : end;
        if (*touched_of(cell))
            for (struct cell *c = cell; c < patch_end; c++)
                sweep_cell(c);
        cell = patch_end;
    }
}

/* Owners whose epochs nobody names are forgotten, but for the last one. */
static void sweep_owners(struct slot *slot, uint32_t first)
{
    uint32_t keep = 0;
    while (keep + 1 < slot->count && slot->owners[keep + 1].since <= first)
        keep++;
    memmove(slot->owners, slot->owners + keep, (slot->count - keep) * sizeof *slot->owners);
    slot->count -= keep;
    owner_count -= keep;
}

static void sweep_locked(void)
{
    uint32_t count = slot_count, left = 0;
    sweep_first = pages_at(0, count * sizeof *sweep_first);
    memset(sweep_first, 0xff, count * sizeof *sweep_first);
    for (unsigned i = 0; i < __atomic_load_n(&range_count, __ATOMIC_ACQUIRE); i++)
        sweep_range(ranges[i].from, ranges[i].to);
    for (uint32_t i = 0; i < count; i++)
        sweep_owners(&slots[i], sweep_first[i]);
    for (uint32_t i = idle_slots.first; i < idle_slots.count; i++)
        if (sweep_first[idle_slots.at[i]] == UINT32_MAX)
            slot_list_add(&forgotten_slots, idle_slots.at[i]);
        else
            idle_slots.at[left++] = idle_slots.at[i];
    idle_slots.first = 0;
    idle_slots.count = left;
    pool_give_back(sweep_first, count * sizeof *sweep_first);
    uint32_t used = count - forgotten_slots.count;
    slots_limit = 2 * used < 256 ? 256 : 2 * used;
    owners_limit = 2 * owner_count < 1u << 20 ? 1u << 20 : 2 * owner_count;
}

#endif
