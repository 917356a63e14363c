/* Notes: 32 bits for a stack, interned.
 *
 * 1. A note never changes and is never taken away, so it can be read at any time without a lock. Equal stacks have equal notes.
 * 2. An entry is (return address, note of the stack below). An access is its own return address on top of its goroutine's stack.
 * 3. Whoever looks up what is there takes no lock: the index that it loads may be an old one, which lacks at most what was added
 *    since; then it looks again under the lock. Old indices stay.
 */
#ifndef RF_GO_NOTES_H
#define RF_GO_NOTES_H

#include "core/map.h"
#include "go/system.h"

#define NOTES_AT 0x310000000000
#define NOTES_MOST (UINT32_C(1) << 28)

struct note {
    uint64_t pc;
    uint32_t below, pad;
};

struct note_index {
    uint32_t mask;
    uint32_t notes[];
};

static struct note_index *note_index;
static uint32_t notes_lock;
static uint32_t note_count = 1; /* note 0 is the empty stack */

static inline struct note *note_at(uint32_t note)
{
    return (struct note *)NOTES_AT + note;
}

static struct note_index *note_index_new(uint32_t places)
{
    struct note_index *index = pages_at(0, sizeof *index + places * sizeof(uint32_t));
    index->mask = places - 1;
    return index;
}

static void notes_begin(void)
{
    pages_at(NOTES_AT, NOTES_MOST * sizeof(struct note));
    note_index = note_index_new(1u << 14);
}

static uint32_t *note_place(struct note_index *index, uint64_t pc, uint32_t below)
{
    for (uint32_t at = (uint32_t)(rf_hash(pc ^ rf_hash(below)) >> 8);; at++) {
        uint32_t *place = &index->notes[at & index->mask];
        uint32_t note = __atomic_load_n(place, __ATOMIC_ACQUIRE); /* pairs with the store that published the entry */
        if (!note || (note_at(note)->pc == pc && note_at(note)->below == below))
            return place;
    }
}

static void note_index_grow(void)
{
    struct note_index *larger = note_index_new(2 * (note_index->mask + 1));
    for (uint32_t i = 1; i < note_count; i++)
        *note_place(larger, note_at(i)->pc, note_at(i)->below) = i;
    __atomic_store_n(&note_index, larger, __ATOMIC_RELEASE);
}

/* 0 if there are too many: what comes then has no stack. */
static __attribute__((noinline)) uint32_t note_put(uint64_t pc, uint32_t below)
{
    uint32_t note = *note_place(__atomic_load_n(&note_index, __ATOMIC_ACQUIRE), pc, below);
    if (note)
        return note;
    spin_lock(&notes_lock);
    if (note_count > note_index->mask / 2)
        note_index_grow();
    uint32_t *place = note_place(note_index, pc, below);
    if (!*place && note_count < NOTES_MOST) {
        *note_at(note_count) = (struct note){ pc, below, 0 };
        __atomic_store_n(place, note_count++, __ATOMIC_RELEASE);
    }
    note = *place;
    spin_unlock(&notes_lock);
    return note;
}

#endif
