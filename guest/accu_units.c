#include "guest/accu_units.h"

#include "guest/accu_access.h"

/* Algorithms 10 and 11 on a cell, which those bytes of the granule have. What the access races with first is what is told. */
static uint64_t accu_step_cell(struct rf_step *step, uint64_t word, unsigned bytes)
{
    struct ftm_cell cell = { .word = word };
    uint32_t race = step->race;
    bool writes = step->race_writes;
    bool races = step->flags & RF_A_WRITE ? alm_write(step, step, &cell, 0, 0) : alm_read(step, step, &cell, 0, 0);
    if (__builtin_expect(races && race, 0))
        rf_step_race(step, race, writes);
    else if (__builtin_expect(races, 0))
        step->race_mask = bytes;
    return cell.word;
}

/* ---- lanes ---- */

static unsigned bytes_like(const uint64_t *lane, uint64_t cell)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < RF_GRANULE; i++)
        mask |= (unsigned)(lane[i] == cell) << i;
    return mask;
}

/* A read now would be one of two that stay. */
static bool makes_set(const uint64_t *cell, const uint64_t *end, const struct rf_step *step)
{
    for (uint64_t known = 0; cell < end; known = *cell++) {
        uint32_t w = (uint32_t)(*cell >> 32), r = (uint32_t)*cell;
        if (*cell != known && r != w && !rf_step_mine(step, r) && !rf_moment_is_now(step->self, w))
            return true;
    }
    return false;
}

/* All happens before the access, which takes the place of any read that there was. */
static bool is_succeeded(uint64_t cell, const struct rf_step *step)
{
    uint32_t w = (uint32_t)(cell >> 32), r = (uint32_t)cell;
    return rf_step_ordered(step, w) && !rf_moment_is_now(step->self, w) &&
           (r == w || (rf_step_mine(step, r) && !rf_moment_is_now(step->self, r)));
}

/* Cells of neighbours are often equal: those are looked at once. What succeeds such a cell does so again, in its epoch, under the same names
 * until a sweep. */
static void accu_step_lanes(uint64_t *lane, unsigned first, unsigned last, struct rf_step *step)
{
    struct rf_self *self = step->self;
    bool own = self == rf_hot.self;
    uint64_t known = own && self->ordered_first == rf_hot.first ? self->ordered_cell : 0, before = ~lane[first], made = 0;
    for (unsigned i = first; i <= last; i++) {
        uint64_t cell = lane[i];
        if (cell != before) {
            before = cell;
            if (cell == known || is_succeeded(cell, step)) {
                known = cell;
                made = (step->flags & RF_A_WRITE ? (uint64_t)step->now << 32 : cell & UINT64_MAX << 32) | step->now;
            } else {
                made = accu_step_cell(step, cell, bytes_like(lane, cell));
            }
        }
        __atomic_store_n(&lane[i], made, __ATOMIC_RELAXED);
    }
    if (own) {
        self->ordered_cell = known;
        self->ordered_first = rf_hot.first;
    }
}

/* What a cell is after an access that meets nothing which had to be told, or kept; 0: it does, or would be one of two reads that stay. */
static inline __attribute__((always_inline)) uint64_t accu_next_cell(const struct rf_self *self, uint64_t cell, uint32_t now, bool writes)
{
    uint32_t w = (uint32_t)(cell >> 32), r = (uint32_t)cell;
    if (accu_is_now(self, w) || (!writes && accu_is_now(self, r)))
        return cell;
    if (!accu_passes(self, w) || (r != w && !(writes ? accu_passes(self, r) : accu_is_mine(self, r))))
        return 0;
    return (writes ? (uint64_t)now << 32 : cell & UINT64_MAX << 32) | now;
}

bool rf_accu_lanes_step(struct rf_self *self, uint64_t *place, uint64_t word, unsigned mask, uint32_t now, unsigned flags)
{
    unsigned first = (unsigned)__builtin_ctz(mask), last = 31 - (unsigned)__builtin_clz(mask);
    uint64_t *lane = rf_lane_at(RF_WORD_X(word)), made[RF_GRANULE], cell = ~lane[first], next = 0;
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    bool stepped = __atomic_load_n(place, __ATOMIC_RELAXED) == word;
    for (unsigned i = first; stepped && i <= last; i++) { /* those of neighbours are often equal */
        next = lane[i] == cell ? next : accu_next_cell(self, lane[i], now, flags & RF_A_WRITE);
        cell = lane[i];
        made[i] = next;
        stepped = next;
    }
    if (__builtin_expect(stepped, 1)) {
        for (unsigned i = first; i <= last; i++)
            __atomic_store_n(&lane[i], made[i], __ATOMIC_RELAXED);
        if (lane[0] == lane[RF_GRANULE - 1])
            rf_lanes_leave(stripe, place, lane);
    }
    rf_spin_unlock(&stripe->lock);
    return stepped;
}

/* ---- records ---- */

#define ALL_BYTES (UINT64_C(0xff) << 56)

/* The bytes are those of whole slices, one if the access writes; none has atomic accesses. If a set ends there must be another one, or there is
 * no need for a record any more. */
static bool accu_fits(const uint64_t *record, unsigned count, unsigned mask, unsigned flags)
{
    unsigned covered = 0, others = 0;
    bool ends = false;
    for (unsigned i = 0; i < count; i++) {
        unsigned bytes = RF_WORD_M(record[i]);
        if (!(bytes & mask)) {
            others |= !!(record[i] & (RF_ODD_BIT | RF_WRITES_BIT));
            continue;
        }
        if ((record[i] & RF_WRITES_BIT) || (bytes & ~mask) || (flags & RF_A_WRITE && bytes != mask))
            return false;
        ends |= flags & RF_A_WRITE && record[i] & RF_ODD_BIT;
        covered |= bytes;
    }
    return covered == mask && (!ends || others);
}

static uint64_t accu_new_set(struct rf_stripe *stripe, uint32_t w, const uint32_t *list, uint32_t count, uint32_t at, uint32_t now)
{
    uint32_t set = rf_readers_new(stripe);
    struct rf_readers *readers = rf_readers_at(set);
    memcpy(readers->few, list, count * sizeof *list);
    readers->few[at] = now;
    readers->count = at == count ? count + 1 : count;
    return RF_WORD(0, set, w) | RF_ODD_BIT;
}

/* A read in the cases that nearly all are, without a look at the rules: the last write passes, and the thread's entry is there, or has room. If
 * it is to a part of the slice's bytes that part gets a set of its own. Returns the slice with its cell to be; 0: not such a case. *known stays what
 * it is if the epoch has read the slice. */
static inline uint64_t accu_read_slice(const struct rf_self *self, struct rf_stripe *stripe, uint64_t slice, uint32_t now, bool part,
                                       bool *known)
{
    uint32_t w = RF_WORD_X(slice), y = RF_WORD_Y(slice);
    bool entered = false;
    if (accu_is_now(self, w))
        return slice;
    if (!(slice & RF_ODD_BIT)) {
        bool stays = y != w && !accu_is_mine(self, y);
        if (!stays && accu_is_now(self, y))
            return slice;
        if (!accu_passes(self, w))
            return 0;
        *known = false;
        return (slice & ALL_BYTES) | (stays ? accu_new_set(stripe, w, &y, 1, 1, now) : RF_WORD(0, now, w));
    }
    struct rf_readers *readers = rf_readers_at(y);
    if (readers->is_many)
        return 0;
    uint32_t at = accu_entry(self, readers, &entered);
    if (entered)
        return slice;
    if (at == RF_FEW || !accu_passes(self, w))
        return 0;
    *known = false;
    if (part)
        return (slice & ALL_BYTES) | accu_new_set(stripe, w, readers->few, readers->count, at, now);
    __atomic_store_n(&readers->few[at], now, __ATOMIC_RELAXED);
    if (at == readers->count)
        __atomic_store_n(&readers->count, at + 1, __ATOMIC_RELEASE);
    return slice;
}

static void accu_step_record(uint64_t *record, unsigned count, unsigned mask, struct rf_step *step)
{
    bool short_way = !(step->flags & (RF_A_WRITE | RF_A_TXN)) && step->self == rf_hot.self, known;
    for (unsigned i = 0; i < count; i++) {
        uint64_t slice = record[i], next = 0;
        if (!(RF_WORD_M(slice) & mask))
            continue;
        if (!short_way || !(next = accu_read_slice(step->self, step->stripe, slice, step->now, false, &known))) {
            uint32_t r = RF_WORD_Y(slice) | (slice & RF_ODD_BIT ? RF_IS_SET : 0);
            uint64_t cell = accu_step_cell(step, (uint64_t)RF_WORD_X(slice) << 32 | r, RF_WORD_M(slice));
            struct rf_slice made = { .mask = (uint8_t)RF_WORD_M(slice), .cell.word = cell };
            next = rf_slice_in_record(&made);
        }
        if (next != slice)
            __atomic_store_n(&record[i], next, __ATOMIC_RELAXED);
    }
}

/* The lock is held. */
static bool accu_step_units(uint64_t *place, uint64_t word, unsigned mask, struct rf_step *step)
{
    unsigned first = (unsigned)__builtin_ctz(mask), last = 31 - (unsigned)__builtin_clz(mask), count = RF_WORD_M(word);
    if (rf_word_has_lanes(word)) {
        uint64_t *lane = rf_lane_at(RF_WORD_X(word));
        if (mask >> first & ((mask >> first) + 1)) /* bytes that do not lie together */
            return false;
        if (!(step->flags & RF_A_WRITE) && makes_set(lane + first, lane + last + 1, step))
            return false;
        accu_step_lanes(lane, first, last, step);
        if (lane[0] == lane[RF_GRANULE - 1])
            rf_lanes_leave(step->stripe, place, lane);
        return true;
    }
    uint64_t *record = rf_record_at(RF_WORD_X(word), count);
    if (!accu_fits(record, count, mask, step->flags))
        return false;
    accu_step_record(record, count, mask, step);
    return true;
}

bool rf_accu_units_step(uint64_t *place, uint64_t word, unsigned mask, struct rf_step *step)
{
    struct rf_stripe *stripe = step->stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    bool stepped = __atomic_load_n(place, __ATOMIC_RELAXED) == word && accu_step_units(place, word, mask, step);
    rf_spin_unlock(&stripe->lock);
    step->stripe = NULL;
    return stepped;
}

/* Some bytes of a slice get another cell. They join what the same epoch has read, from whatever place, as in rf_locked_quick(); else there is
 * one slice more. Returns the word to be. */
static uint64_t accu_divide(struct rf_self *self, struct rf_stripe *stripe, uint64_t *place, uint64_t word, unsigned index, uint64_t part,
                            uint32_t now)
{
    unsigned count = RF_WORD_M(word);
    uint64_t *record = rf_record_at(RF_WORD_X(word), count), *made = record, next = word + (UINT64_C(1) << 56), bytes = part & ALL_BYTES;
    for (unsigned i = 0; i < count && !(part & RF_ODD_BIT); i++) {
        uint32_t y = RF_WORD_Y(record[i]);
        if ((record[i] & (RF_ODD_BIT | RF_WRITES_BIT)) || RF_WORD_X(record[i]) != RF_WORD_X(part) || !rf_moment_is_hot(y) ||
            rf_moment_locks(y) != rf_moment_locks(now))
            continue;
        __atomic_store_n(&record[i], record[i] | bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&record[index], record[index] & ~bytes, __ATOMIC_RELAXED);
        if (y != now)
            rf_nearby_put(self, place, RF_WORD_M(part), y, rf_moment_note_beside(now, y));
        return word;
    }
    if (count == RF_RECORD_FEW) {
        uint32_t number = rf_record_new(stripe, count + 1);
        next = RF_WORD(count + 1, 0, number) | RF_ODD_BIT | RF_WRITES_BIT;
        made = rf_record_at(number, count + 1);
        for (unsigned i = 0; i < count; i++)
            __atomic_store_n(&made[i], record[i], __ATOMIC_RELAXED);
    }
    __atomic_store_n(&made[count], part, __ATOMIC_RELAXED);
    __atomic_store_n(&made[index], made[index] & ~bytes, __ATOMIC_RELAXED);
    __atomic_exchange_n(place, next, __ATOMIC_ACQ_REL);
    rf_touch(place);
    rf_record_end_unless(stripe, word, next);
    return next;
}

/* Asked before the first slice is changed: who takes another way then would find the bytes read in this epoch, and not look at the others. */
static inline bool meets_atomic(const uint64_t *record, unsigned count, unsigned mask)
{
    for (unsigned i = 0; i < count; i++)
        if ((record[i] & RF_WRITES_BIT) && (RF_WORD_M(record[i]) & mask))
            return true;
    return false;
}

/* The lock is held. */
static bool accu_read_record(struct rf_self *self, struct rf_stripe *stripe, uint64_t *place, uint64_t word, unsigned mask, uint32_t now,
                             bool *known)
{
    unsigned covered = 0;
    if (meets_atomic(rf_record_at(RF_WORD_X(word), RF_WORD_M(word)), RF_WORD_M(word), mask))
        return false;
    for (unsigned i = 0; i < RF_WORD_M(word); i++) {
        uint64_t *at = rf_record_at(RF_WORD_X(word), RF_WORD_M(word)) + i, slice = *at, next;
        unsigned bytes = RF_WORD_M(slice) & mask;
        bool part = RF_WORD_M(slice) != bytes;
        if (!bytes)
            continue;
        if (!(next = accu_read_slice(self, stripe, slice, now, part, known)))
            return false;
        if (next != slice && part)
            word = accu_divide(self, stripe, place, word, i, (next & ~ALL_BYTES) | (uint64_t)bytes << 56, now);
        else if (next != slice)
            __atomic_store_n(at, next, __ATOMIC_RELAXED);
        covered |= bytes;
    }
    return covered == mask;
}

bool rf_accu_reads_record(struct rf_self *self, uint64_t *place, uint64_t word, unsigned mask, uint32_t now, bool *known)
{
    struct rf_stripe *stripe = rf_stripe_of(place);
    *known = true;
    rf_spin_lock(&stripe->lock);
    bool read = __atomic_load_n(place, __ATOMIC_RELAXED) == word && accu_read_record(self, stripe, place, word, mask, now, known);
    rf_spin_unlock(&stripe->lock);
    return read;
}

bool rf_accu_begins_map(uint64_t *place, uint64_t word, uint32_t now, uint32_t passes)
{
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    uint32_t set = rf_readers_new(stripe);
    struct rf_readers *readers = rf_readers_at(set);
    readers->few[0] = RF_WORD_Y(word);
    readers->few[1] = now;
    readers->count = 2;
    readers->passes = (uint16_t)(passes <= UINT16_MAX ? passes : 0);
    uint64_t next = RF_WORD(RF_WORD_M(word), set, RF_WORD_X(word)) | RF_ODD_BIT;
    bool begun = __atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (__builtin_expect(!begun, 0))
        rf_readers_end(stripe, set);
    rf_spin_unlock(&stripe->lock);
    if (begun)
        rf_touch(place);
    return begun;
}
