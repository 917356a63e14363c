/* Does an access repeat one of the thread's present epoch? rf_word_repeats() of guest/granule.h, for all forms of a history. Nothing is
 * locked: moments of its own epoch are what a thread may believe wherever it finds them (guest/units.h, 2). */
#include "guest/granule.h"
#include "guest/lanes.h"

/* A moment of the present epoch in a set; see guest/units.h, 2. */
static bool set_has_now(uint32_t set, bool must_write)
{
    struct rf_readers *readers = rf_readers_at(set);
    uint32_t count = __atomic_load_n(&readers->count, __ATOMIC_ACQUIRE), room = RF_FEW;
    const uint32_t *list = readers->few;
    if (__atomic_load_n(&readers->is_many, __ATOMIC_ACQUIRE)) {
        const uint32_t *many = __atomic_load_n(&readers->many, __ATOMIC_ACQUIRE);
        if (!many)
            return false;
        room = many[0];
        list = many + 1;
    }
    if (count > room)
        count = room;
    for (uint32_t i = 0; i < count && i < RF_MANY_LIMIT; i++) {
        uint32_t moment = __atomic_load_n(&list[i], __ATOMIC_RELAXED) & RF_MOMENT_MASK;
        if (rf_moment_is_hot(moment) && (!must_write || (rf_note_flags(rf_moment_note(moment)) & RF_A_WRITE)))
            return true;
    }
    return false;
}

/* Which bytes of one slice (as a word of a record) the thread has accessed in this epoch, in the way that the flags say. */
static unsigned repeated(uint64_t slice, unsigned flags)
{
    bool atomic = flags & RF_A_ATOMIC, writes = flags & RF_A_WRITE;
    if (atomic != !!(slice & RF_WRITES_BIT))
        return 0;
    if (!atomic && writes)
        return rf_moment_is_hot(RF_WORD_X(slice)) ? RF_WORD_M(slice) : 0;
    if (slice & RF_ODD_BIT)
        return set_has_now(RF_WORD_Y(slice), writes) ? RF_WORD_M(slice) : 0;
    uint32_t r = RF_WORD_Y(slice);
    bool mine = rf_moment_is_hot(r) && (!writes || (rf_note_flags(rf_moment_note(r)) & RF_A_WRITE));
    r = RF_WORD_X(slice);
    mine |= atomic && rf_moment_is_hot(r) && (!writes || (rf_note_flags(rf_moment_note(r)) & RF_A_WRITE));
    return mine ? RF_WORD_M(slice) : 0;
}

/* The last access of a cell that one with these flags would repeat. */
static uint32_t last_in(uint32_t name, unsigned flags)
{
    return flags & RF_A_WRITE ? rf_cell_w(name) : rf_cell_r(name);
}

bool rf_word_repeats(const uint64_t *place, uint64_t word, unsigned mask, unsigned flags)
{
    unsigned m = RF_WORD_M(word), covered = 0;
    if (rf_word_has_lanes(word)) {
        covered = !(flags & RF_A_ATOMIC) && rf_lanes_repeat(word, mask, flags & RF_A_WRITE) ? mask : 0;
    } else if (rf_word_is_atomic(word)) {
        if (!(flags & RF_A_ATOMIC))
            return (m >= RF_ATOMIC_ONE) && rf_moment_is_hot(RF_WORD_X(word));
        return rf_word_atomic_repeats(word, mask, flags & RF_A_WRITE);
    } else if (!rf_word_is_record(word)) {
        if (flags & RF_A_ATOMIC)
            return false;
        if (rf_word_is_mixed(word)) {
            struct rf_masks masks = rf_word_masks(word);
            if (rf_moment_is_hot(RF_WORD_Y(word)))
                covered = flags & RF_A_WRITE ? masks.written : masks.written | masks.read;
        } else if (word & RF_WRITES_BIT)
            covered = (rf_moment_is_hot(RF_WORD_Y(word)) ? m : 0) | (rf_moment_is_hot(last_in(RF_WORD_X(word), flags)) ? ~m : 0);
        else if (rf_moment_is_hot(rf_cell_w(RF_WORD_X(word))))
            covered = 0xff; /* written in this epoch */
        else if (!(flags & RF_A_WRITE))
            covered = repeated(word, flags) | (rf_moment_is_hot(rf_cell_r(RF_WORD_X(word))) ? rf_word_has_two(word) ? 0xff : ~m : 0);
    } else {
        const uint64_t *record = rf_record_at(RF_WORD_X(word), m);
        for (unsigned i = 0; i < m && i < RF_RECORD_MOST; i++)
            covered |= repeated(__atomic_load_n(&record[i], __ATOMIC_RELAXED), flags);
    }
    if ((covered & mask) != mask)
        return false;
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* what was read of units was read before the word is looked at again */
    return !rf_word_has_units(word) || __atomic_load_n(place, __ATOMIC_RELAXED) == word;
}
