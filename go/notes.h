/* Notes: 32 bits for a stack, interned.
 *
 * 1. A note never changes and is never taken away, so it can be read at any time without a lock. Equal stacks have equal notes.
 * 2. An entry is (return address, note of the stack below). An access is its own return address on top of its goroutine's stack.
 * 3. Whoever looks up what is there takes no lock, and reads one line of memory: the index has the entries themselves. An entry is there
 *    once its note is not 0, and does not change then. An index that was loaded may be an old one, which lacks at most what was added
 *    since; then it looks again under the lock. Old indices stay.
 */
#ifndef RF_GO_NOTES_H
#define RF_GO_NOTES_H

#include "go/system.h"

#define NOTES_AT 0x310000000000
#define NOTES_MOST (UINT32_C(1) << 28)

struct note {
    uint64_t pc;
    uint32_t below;
    uint32_t note; /* itself */
};

struct note_index {
    uint32_t bits; /* it has 2 to their power places */
    struct note at[] __attribute__((aligned(32)));
};

/* What all read and hardly anybody writes has a line of memory to itself: nobody waits for it because something beside it was written. */
static struct {
    struct note_index *note_index;
    uintptr_t code_base;  /* see go_place */
    uint32_t all_learned; /* see goroutines.h */
} __attribute__((aligned(64))) steady;
static uint32_t notes_lock;
static uint32_t note_count = 1; /* note 0 is the empty stack */

static inline struct note *note_at(uint32_t note)
{
    return (struct note *)NOTES_AT + note;
}

static struct note_index *note_index_new(uint32_t bits)
{
    struct note_index *index = pages_at(0, sizeof *index + (sizeof *index->at << bits));
    index->bits = bits;
    return index;
}

static void notes_begin(void)
{
    pages_at(NOTES_AT, NOTES_MOST * sizeof(struct note));
    steady.note_index = note_index_new(14);
}

static inline struct note *note_home(struct note_index *index, uint64_t pc, uint32_t below)
{
    return &index->at[(pc + below * UINT64_C(0xd6e8feb86659fd93)) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - index->bits)];
}

static inline bool note_is(const struct note *note, uint64_t pc, uint32_t below)
{
    return __atomic_load_n(&note->note, __ATOMIC_ACQUIRE) && note->pc == pc && note->below == below;
}

/* Where it is, or belongs: the two places of a pair first, then the next pair. */
static struct note *note_place(struct note_index *index, uint64_t pc, uint32_t below)
{
    size_t first = (size_t)(note_home(index, pc, below) - index->at), mask = ((size_t)1 << index->bits) - 1;
    for (size_t i = 0;; i++) {
        struct note *place = &index->at[((first + (i & ~(size_t)1)) & mask) ^ (i & 1)];
        if (!__atomic_load_n(&place->note, __ATOMIC_ACQUIRE) || note_is(place, pc, below))
            return place;
    }
}

static void note_index_grow(void)
{
    struct note_index *larger = note_index_new(steady.note_index->bits + 1);
    for (uint32_t i = 1; i < note_count; i++)
        *note_place(larger, note_at(i)->pc, note_at(i)->below) = *note_at(i);
    __atomic_store_n(&steady.note_index, larger, __ATOMIC_RELEASE);
}

/* 0 if there are too many: what comes then has no stack. */
static __attribute__((noinline)) uint32_t note_put_slowly(uint64_t pc, uint32_t below)
{
    uint32_t note = note_place(__atomic_load_n(&steady.note_index, __ATOMIC_ACQUIRE), pc, below)->note;
    if (note)
        return note;
    spin_lock(&notes_lock);
    if (note_count >> (steady.note_index->bits - 2))
        note_index_grow();
    struct note *place = note_place(steady.note_index, pc, below);
    if (!place->note && note_count < NOTES_MOST) {
        *note_at(note_count) = (struct note){ pc, below, note_count };
        place->pc = pc;
        place->below = below;
        __atomic_store_n(&place->note, note_count++, __ATOMIC_RELEASE);
    }
    note = place->note;
    spin_unlock(&notes_lock);
    return note;
}

/* It is in the first place that it can be in, or in the one beside it in the same line of memory; or elsewhere, which is rare. */
static inline uint32_t note_put(uint64_t pc, uint32_t below)
{
    const struct note *home = note_home(__atomic_load_n(&steady.note_index, __ATOMIC_ACQUIRE), pc, below);
    if (__builtin_expect(note_is(home, pc, below), 1))
        return home->note;
    home = (const struct note *)((uintptr_t)home ^ sizeof *home);
    return note_is(home, pc, below) ? home->note : note_put_slowly(pc, below);
}

/* ---- places ---- */

/* Where an access was: its return address, from code_base on, in the upper half, and its goroutine's stack in the lower one; so nothing
 * has to be looked up to have it. An address that is too far away (of a plugin) has a note for both, and an upper half of 0. */
typedef uint64_t go_place;

static inline go_place place_make(uintptr_t pc, uint32_t stack)
{
    uintptr_t distance = pc - steady.code_base;
    return __builtin_expect(distance >> 31 == 0, 1) ? (go_place)distance << 32 | stack : note_put(pc, stack);
}

static uint32_t place_note(go_place place)
{
    return place >> 32 ? note_put(steady.code_base + (uintptr_t)(place >> 32), (uint32_t)place) : (uint32_t)place;
}

#endif
