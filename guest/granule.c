#include "guest/granule.h"

#include "guest/lanes.h"
#include "guest/nearby.h"
#include "guest/policy.h"

#define DIGIT(code, place) ((code) / (place) % 3)
#define PAIRS(code, digit)                                                                                                   \
    ((DIGIT(code, 1) == (digit)) * 0x03 | (DIGIT(code, 3) == (digit)) * 0x0c | (DIGIT(code, 9) == (digit)) * 0x30 |          \
     (DIGIT(code, 27) == (digit)) * 0xc0)
#define MASKS(code) { PAIRS(code, 2), PAIRS(code, 1) }
#define MASKS9(c) MASKS(c), MASKS(c + 1), MASKS(c + 2), MASKS(c + 3), MASKS(c + 4), MASKS(c + 5), MASKS(c + 6), MASKS(c + 7), MASKS(c + 8)

#define LOOSE(mask) { mask, 0xff & ~(mask) },
#define LOOSE_CODE(mask) [mask] = RF_LOOSE_##mask,

const struct rf_masks rf_mixed_masks[RF_LOOSE_END] = { MASKS9(0),  MASKS9(9),  MASKS9(18), MASKS9(27), MASKS9(36),
                                                       MASKS9(45), MASKS9(54), MASKS9(63), MASKS9(72), RF_LOOSE_MASKS(LOOSE) };
const uint8_t rf_loose_codes[256] = { RF_LOOSE_MASKS(LOOSE_CODE) };

const uint8_t rf_atomic_masks[16] = { 0,    0xff, 0x0f, 0xf0, 0x03, 0x0c, 0x30, 0xc0,
                                      0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80 };

void rf_slices_end(struct rf_slices *slices, struct rf_step *step)
{
    for (unsigned i = 0; i < slices->count; i++)
        ftm_clear(step, &slices->list[i].cell);
}

static struct rf_slice *add(struct rf_slices *slices, unsigned mask, uint32_t w, uint32_t r)
{
    struct rf_slice *slice = &slices->list[slices->count];
    *slice = (struct rf_slice){ .mask = (uint8_t)mask, .cell.word = (uint64_t)w << 32 | r };
    slices->count += mask != 0;
    return slice;
}

/* A slice in a record looks like a word whose other bytes do not count. An atomic one may have two moments, as a word may. */
uint64_t rf_slice_in_record(const struct rf_slice *slice)
{
    uint32_t r = rf_slice_r(slice);
    return RF_WORD(slice->mask, r & ~RF_IS_SET, rf_slice_w(slice)) | (r & RF_IS_SET ? RF_ODD_BIT : 0) |
           (slice->atomic ? RF_WRITES_BIT : 0);
}

static void add_record_word(struct rf_slices *slices, uint64_t word)
{
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), r = y | (word & RF_ODD_BIT ? RF_IS_SET : 0);
    bool atomic = word & RF_WRITES_BIT;
    add(slices, RF_WORD_M(word), atomic ? 0 : x, r)->atomic = atomic;
    if (!atomic || !x)
        return;
    add(slices, RF_WORD_M(word), 0, x)->atomic = true;
    slices->twofold = true;
}

void rf_slices_of(uint64_t word, struct rf_slices *slices)
{
    unsigned m = RF_WORD_M(word);
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word);
    slices->count = 0;
    slices->twofold = false;
    if (rf_word_has_lanes(word)) {
        uint64_t list[RF_GRANULE];
        unsigned count = rf_lanes_spread(word, list);
        for (unsigned i = 0; i < count; i++)
            add_record_word(slices, list[i]);
        return;
    }
    if (rf_word_is_mixed(word)) {
        struct rf_masks masks = rf_word_masks(word);
        add(slices, masks.written, y, y);
        add(slices, masks.read, rf_cell_w(x), y);
        add(slices, ~(unsigned)(masks.written | masks.read) & 0xff, rf_cell_w(x), rf_cell_r(x));
        return;
    }
    if (rf_word_is_atomic(word)) {
        bool two = m < RF_ATOMIC_ONE;
        add(slices, 0xff, two ? 0 : x, two ? 0 : x);
        add(slices, rf_atomic_mask(word), 0, y)->atomic = true;
        if (two)
            add(slices, rf_atomic_mask(word), 0, x)->atomic = true;
        slices->twofold = two;
        return;
    }
    if (rf_word_is_record(word)) {
        const uint64_t *record = rf_record_at(x, m);
        for (unsigned i = 0; i < m; i++)
            add_record_word(slices, record[i]);
        return;
    }
    if (word & RF_WRITES_BIT)
        add(slices, m, y, y);
    else
        add(slices, m, rf_cell_w(x), y | (word & RF_ODD_BIT ? RF_IS_SET : 0));
    if (rf_word_has_two(word)) {
        add(slices, m, rf_cell_w(x), rf_cell_r(x));
        slices->twofold = true;
    }
    add(slices, ~m & 0xff, rf_cell_w(x), rf_cell_r(x));
}

/* The bytes of the slice that are not in the mask become a slice of their own. */
static void split(struct rf_slices *slices, unsigned index, unsigned mask, struct rf_step *step)
{
    struct rf_slice *slice = &slices->list[index], *rest = &slices->list[slices->count++];
    *rest = *slice;
    rest->mask = slice->mask & (uint8_t)~mask;
    ftm_copy(step, &rest->cell, &slice->cell);
    slice->mask &= (uint8_t)mask;
}

/* Whether a moment in an atomic slice conflicts with an access that has these flags. */
static bool conflicts(uint32_t moment, unsigned flags)
{
    return (flags & RF_A_WRITE) || (rf_note_flags(rf_moment_note(moment)) & RF_A_WRITE);
}

static void check_atomic(const struct rf_slice *slice, struct rf_step *step)
{
    uint32_t r = rf_slice_r(slice);
    if (!(r & RF_IS_SET)) {
        if (conflicts(r, step->flags) && rf_step_races_with(step, r, conflicts(r, 0)))
            rf_step_race(step, r, conflicts(r, 0));
        return;
    }
    struct rf_readers *readers = rf_readers_at(r & ~RF_IS_SET);
    for (uint32_t i = 0; i < readers->count && !step->race; i++) {
        uint32_t moment = rf_readers_list(readers)[i];
        if (conflicts(moment, step->flags) && rf_step_races_with(step, moment, conflicts(moment, 0)))
            rf_step_race(step, moment, conflicts(moment, 0));
    }
}

/* A plain write that happens after all of them conflicts with whatever they conflict with. */
static bool atomic_is_covered(const struct rf_slice *slice, struct rf_step *step)
{
    uint32_t r = rf_slice_r(slice);
    if (!(r & RF_IS_SET))
        return rf_step_ordered(step, r);
    struct rf_readers *readers = rf_readers_at(r & ~RF_IS_SET);
    for (uint32_t i = 0; i < readers->count; i++)
        if (!rf_step_ordered(step, rf_readers_list(readers)[i]))
            return false;
    return true;
}

static void remove_slice(struct rf_slices *slices, unsigned index)
{
    slices->list[index] = slices->list[--slices->count];
}

/* Moments of an atomic set leave that the new one replaces (invariant 2). */
static void remove_replaced(uint32_t set, const struct rf_step *step)
{
    bool writes = step->flags & RF_A_WRITE;
    for (uint32_t i = rf_readers_at(set)->count; i-- > 0;) {
        uint32_t old = rf_readers_list(rf_readers_at(set))[i];
        if (rf_step_replaces(step, old, rf_readers_at(set)->count) && (writes || !conflicts(old, 0)))
            rf_readers_remove(set, i);
    }
}

/* The moment joins the slice; those that it replaces leave. */
static void put_atomic(struct rf_slice *slice, struct rf_step *step)
{
    uint32_t r = rf_slice_r(slice);
    bool writes = step->flags & RF_A_WRITE;
    if (!(r & RF_IS_SET)) {
        if (rf_step_replaces(step, r, 1) && (writes || !conflicts(r, 0))) {
            slice->cell.word = step->now;
            return;
        }
        uint32_t set = rf_readers_new(step->stripe);
        rf_readers_add(set, r);
        rf_readers_add(set, step->now);
        slice->cell.word = RF_IS_SET | set;
        return;
    }
    remove_replaced(r & ~RF_IS_SET, step);
    rf_readers_add(r & ~RF_IS_SET, step->now);
}

/* Nothing joins it. */
static void discard_atomic(struct rf_slice *slice, struct rf_step *step)
{
    uint32_t r = rf_slice_r(slice), set = r & ~RF_IS_SET;
    bool writes = step->flags & RF_A_WRITE;
    if (!(r & RF_IS_SET)) {
        if (rf_step_ordered(step, r) && (writes || !conflicts(r, 0)))
            slice->mask = 0;
        return;
    }
    remove_replaced(set, step);
    uint32_t count = rf_readers_at(set)->count;
    if (count > 1)
        return;
    slice->cell.word = count ? rf_readers_list(rf_readers_at(set))[0] : 0;
    slice->mask = count ? slice->mask : 0;
    rf_readers_end(step->stripe, set);
}

/* A plain slice, against an access of either kind. */
static void check_plain(const struct rf_slice *slice, struct rf_step *step)
{
    uint32_t w = rf_slice_w(slice), r = rf_slice_r(slice);
    if (rf_step_races_with(step, w, true))
        rf_step_race(step, w, true);
    else if ((step->flags & RF_A_WRITE) && r & RF_IS_SET)
        rf_step_race_in_set(step, r & ~RF_IS_SET);
    else if ((step->flags & RF_A_WRITE) && r != w && rf_step_races_with(step, r, false))
        rf_step_race(step, r, false);
}

bool rf_slices_race(const struct rf_slices *slices, unsigned mask, struct rf_step *step)
{
    step->race = 0;
    for (unsigned i = 0; i < slices->count && !step->race; i++) {
        const struct rf_slice *slice = &slices->list[i];
        if (!(slice->mask & mask) || (slice->atomic && step->flags & RF_A_ATOMIC))
            continue;
        if (slice->atomic)
            check_atomic(slice, step);
        else
            check_plain(slice, step);
        step->race_mask = slice->mask;
    }
    return step->race;
}

static void step_atomic(struct rf_slices *slices, unsigned mask, struct rf_step *step)
{
    unsigned left = mask;
    for (unsigned i = 0, count = slices->count; i < count; i++) {
        struct rf_slice *slice = &slices->list[i];
        if (!(slice->mask & mask))
            continue;
        if (!slice->atomic) {
            uint32_t race = step->race;
            check_plain(slice, step);
            if (step->race != race)
                step->race_mask = slice->mask;
            continue;
        }
        if (slice->mask & ~mask)
            split(slices, i, mask, step);
        left &= ~(unsigned)slices->list[i].mask;
        if (__builtin_expect(step->passes, 0))
            discard_atomic(&slices->list[i], step);
        else
            put_atomic(&slices->list[i], step);
    }
    if (left && !step->passes)
        add(slices, left, 0, step->now)->atomic = true;
}

static void step_plain(struct rf_slices *slices, unsigned mask, struct rf_step *step)
{
    bool writes = step->flags & RF_A_WRITE;
    for (unsigned i = 0, count = slices->count; i < count; i++) {
        struct rf_slice *slice = &slices->list[i];
        if (!(slice->mask & mask))
            continue;
        if (slice->atomic) {
            if (!step->race) {
                check_atomic(slice, step);
                step->race_mask = slice->mask;
            }
            if (writes && !(slice->mask & ~mask) && atomic_is_covered(slice, step)) {
                ftm_clear(step, &slice->cell);
                slice->mask = 0;
            }
            continue;
        }
        uint32_t race = step->race;
        bool race_writes = step->race_writes;
        unsigned whole = slice->mask;
        if (slice->mask & ~mask)
            split(slices, i, mask, step);
        if (__builtin_expect(step->passes, 0))
            writes ? pcm_write_slow(step, step, &slices->list[i].cell, 0) : pcm_read_slow(step, step, &slices->list[i].cell, 0);
        else if (writes)
            rf_accu ? alm_write(step, step, &slices->list[i].cell, 0, 0) : ftm_write(step, step, &slices->list[i].cell, 0, 0);
        else
            rf_accu ? alm_read(step, step, &slices->list[i].cell, 0, 0) : ftm_read(step, step, &slices->list[i].cell, 0, 0);
        if (race)
            rf_step_race(step, race, race_writes);
        else
            step->race_mask = whole;
    }
}

void rf_slices_join(struct rf_slices *slices)
{
    for (unsigned i = 0; i < slices->count; i++) {
        if (!slices->list[i].mask) {
            remove_slice(slices, i--);
            continue;
        }
        for (unsigned j = i + 1; j < slices->count;) {
            struct rf_slice *a = &slices->list[i], *b = &slices->list[j];
            if (a->cell.word == b->cell.word && a->atomic == b->atomic && !(rf_slice_r(a) & RF_IS_SET)) {
                a->mask |= b->mask;
                remove_slice(slices, j);
            } else {
                j++;
            }
        }
    }
}

void rf_slices_gather(struct rf_slices *slices, struct rf_step *step)
{
    for (unsigned i = 0; slices->twofold && i < slices->count; i++)
        for (unsigned j = i + 1; j < slices->count; j++) {
            struct rf_slice *a = &slices->list[i], *b = &slices->list[j];
            if (a->atomic != b->atomic || a->mask != b->mask)
                continue;
            uint32_t set = rf_readers_new(step->stripe);
            rf_readers_add(set, rf_slice_r(a));
            rf_readers_add(set, rf_slice_r(b));
            a->cell.word = (uint64_t)rf_slice_w(a) << 32 | RF_IS_SET | set;
            remove_slice(slices, j);
            break;
        }
    slices->twofold = false;
}

void rf_slices_step(struct rf_slices *slices, unsigned mask, struct rf_step *step)
{
    if (slices->twofold && step->stripe)
        rf_slices_gather(slices, step);
    if (step->flags & RF_A_ATOMIC) {
        step->needs_stripe |= !step->stripe;
        if (step->stripe)
            step_atomic(slices, mask, step);
    } else {
        step_plain(slices, mask, step);
    }
    rf_slices_join(slices);
}

/* Slices as a word whose Y is that moment, if there is a form for them. */
static bool as_word_of(uint32_t y, const uint64_t *list, unsigned count, uint64_t *word)
{
    unsigned written = 0, read = 0, rest = 0;
    uint32_t x = 0, last = 0;
    for (unsigned i = 0; i < count; i++) {
        uint32_t w = RF_WORD_X(list[i]), r = RF_WORD_Y(list[i]);
        if (list[i] & (RF_ODD_BIT | RF_WRITES_BIT))
            return false;
        if (w == y && r == y) {
            written |= RF_WORD_M(list[i]);
            continue;
        }
        if (((read | rest) && w != x) || (r != y && rest && r != last))
            return false;
        x = w;
        if (r == y) {
            read |= RF_WORD_M(list[i]);
        } else {
            rest |= RF_WORD_M(list[i]);
            last = r;
        }
    }
    if (rest && last != x && !(x = rf_cell_named(x, last)))
        return false;
    return rf_word_make(y, x, written, read, word);
}

/* One to three plain slices as a word, if there is a form for them. */
static bool as_word(const struct rf_slices *slices, uint32_t now, uint64_t *word)
{
    uint64_t list[3] = { 0 };
    if (slices->count > 3)
        return false;
    for (unsigned i = 0; i < slices->count; i++) {
        const struct rf_slice *slice = &slices->list[i];
        if (slice->atomic)
            return false;
        if (rf_slice_r(slice) & RF_IS_SET) { /* a set, and the rest untouched since the write */
            const struct rf_slice *rest = slices->count == 2 ? &slices->list[!i] : NULL;
            *word = RF_WORD(slice->mask, rf_slice_r(slice) & ~RF_IS_SET, rf_slice_w(slice)) | RF_ODD_BIT;
            rf_readers_unsettle(rf_slice_r(slice) & ~RF_IS_SET);
            return slices->count == 1 || (rest && !rest->atomic && rest->cell.word == ((uint64_t)rf_slice_w(slice) << 32 | rf_slice_w(slice)));
        }
        list[i] = rf_slice_in_record(slice);
    }
    if (now && as_word_of(now, list, slices->count, word))
        return true;
    for (unsigned i = 0; i < slices->count; i++)
        if (RF_WORD_Y(list[i]) && as_word_of(RF_WORD_Y(list[i]), list, slices->count, word))
            return true;
    return false;
}

/* Slices as those of a record, which lie there. They go into lanes if they can. */
static uint64_t put_units(struct rf_stripe *stripe, uint64_t old, const uint64_t *list, unsigned count)
{
    uint64_t kinds = 0, word;
    for (unsigned i = 0; i < count; i++)
        kinds |= list[i] & (RF_ODD_BIT | RF_WRITES_BIT);
    if (!kinds && rf_policy == RF_POLICY_CAS && !rf_multi && (word = rf_lanes_put(stripe, old, list, count)))
        return word;
    /* The record that it had is written anew if it has room. Who looks at it without the lock may see a part of both states, which
     * says nothing wrong of the thread's own accesses (guest/units.h, 2). */
    bool reuse = rf_word_is_record(old) && (RF_WORD_M(old) > RF_RECORD_FEW) == (count > RF_RECORD_FEW);
    uint32_t number = reuse ? RF_WORD_X(old) : rf_record_new(stripe, count);
    uint64_t *record = rf_record_at(number, count);
    for (unsigned i = 0; i < count; i++)
        __atomic_store_n(&record[i], list[i], __ATOMIC_RELAXED);
    return RF_WORD(count, 0, number) | RF_ODD_BIT | RF_WRITES_BIT;
}

uint64_t rf_slices_word(struct rf_slices *slices, struct rf_step *step, uint64_t old)
{
    const struct rf_slice *list = slices->list;
    uint64_t word = 0, made[2 * RF_RECORD_MOST];
    if (slices->count == 1 && list[0].mask == 0xff && !list[0].cell.word)
        return 0;
    if (as_word(slices, step->now, &word))
        return word;
    step->needs_stripe |= !step->stripe;
    if (!step->stripe)
        return 0;
    for (unsigned i = 0; i < slices->count; i++)
        made[i] = rf_slice_in_record(&list[i]);
    return put_units(step->stripe, old, made, slices->count);
}

uint64_t rf_word_without(struct rf_step *step, uint64_t word, unsigned mask)
{
    struct rf_slices slices;
    rf_slices_of(word, &slices);
    rf_slices_gather(&slices, step);
    for (unsigned i = 0, count = slices.count; i < count; i++) {
        struct rf_slice *slice = &slices.list[i];
        if (!(slice->mask & ~mask)) {
            ftm_clear(step, &slice->cell);
            slice->mask = slice->atomic ? 0 : slice->mask;
        } else if (slice->mask & mask && !slice->atomic) {
            slices.list[slices.count++] = (struct rf_slice){ .mask = slice->mask & (uint8_t)mask };
            slice->mask &= (uint8_t)~mask;
        } else {
            slice->mask &= (uint8_t)~mask;
        }
    }
    rf_slices_join(&slices);
    return rf_slices_word(&slices, step, word);
}

/* The slices of a word, as words of a record. Returns how many. */
static unsigned spread(uint64_t word, uint64_t *list)
{
    unsigned m = RF_WORD_M(word), count = 0;
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word);
    if (rf_word_has_lanes(word))
        return rf_lanes_spread(word, list);
    if (rf_word_is_record(word)) {
        memcpy(list, rf_record_at(x, m), m * sizeof *list);
        return m;
    }
    unsigned written = word & RF_WRITES_BIT ? m : 0, read = m & ~written;
    if (rf_word_is_mixed(word)) {
        written = rf_mixed_masks[m].written;
        read = rf_mixed_masks[m].read;
    }
    unsigned rest = ~(written | read) & 0xff;
    if (written)
        list[count++] = RF_WORD(written, y, y);
    if (read)
        list[count++] = RF_WORD(read, y, rf_cell_w(x)) | (rf_word_has_units(word) ? RF_ODD_BIT : 0);
    if (rest)
        list[count++] = RF_WORD(rest, rf_cell_r(x), rf_cell_w(x));
    return count;
}

#define CELL ((UINT64_C(1) << 56) - 1) /* of a slice: all but its bytes */

/* Bytes that have this cell from now on. */
static void put_bytes(uint64_t *list, unsigned *count, unsigned mask, uint64_t cell)
{
    for (unsigned i = 0; i < *count; i++)
        if ((list[i] & CELL) == cell) {
            list[i] |= (uint64_t)mask << 56;
            return;
        }
    list[(*count)++] = (uint64_t)mask << 56 | cell;
}

/* A slice that the step makes. It becomes part of one that the same epoch made, from whatever place in the program, as in a word
 * (rf_word_join): so a granule that is gone through byte by byte is soon in one piece again. Returns the moment of both. */
static uint32_t put_slice(const uint64_t *place, uint64_t *list, unsigned *count, uint64_t slice, const struct rf_step *step)
{
    unsigned mask = RF_WORD_M(slice);
    bool writes = step->flags & RF_A_WRITE, own = step->self == rf_hot.self; /* others' notes are not ours to keep */
    for (unsigned i = 0; i < *count && own; i++) {
        uint32_t r = RF_WORD_Y(list[i]), w = RF_WORD_X(list[i]);
        if ((list[i] & (RF_ODD_BIT | RF_WRITES_BIT)) || !rf_moment_is_hot(r) || w != (writes ? r : RF_WORD_X(slice)))
            continue;
        if (__builtin_expect(rf_accu, 0) && rf_moment_locks(r) != rf_moment_locks(step->now))
            continue;
        list[i] |= (uint64_t)mask << 56;
        if (r != step->now)
            rf_nearby_put(step->self, place, mask, r, rf_moment_note_beside(step->now, r));
        return r;
    }
    list[(*count)++] = slice;
    return step->now;
}

/* A plain access after everything that it meets: [FT' READ EXCL], [FT' WRITE EXCL], byte by byte; bytes that this epoch has accessed
 * already stay as they are. */
static bool plain_quick(const uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step, uint64_t *next)
{
    uint64_t list[RF_RECORD_MOST], made[RF_GRANULE]; /* bytes are eight: there are never more */
    unsigned count = spread(word, list), kept = 0, made_count = 0, left = mask;
    bool writes = step->flags & RF_A_WRITE;
    uint32_t y = step->now;
    for (unsigned i = 0; i < count; i++) {
        uint32_t r = RF_WORD_Y(list[i]), w = RF_WORD_X(list[i]);
        if (!(RF_WORD_M(list[i]) & mask))
            continue;
        if ((list[i] & (RF_ODD_BIT | RF_WRITES_BIT)) || !rf_step_ordered(step, r) || !rf_step_ordered(step, w))
            return false;
        uint32_t last = writes ? w : r;
        if (rf_moment_is_hot(last) || (rf_accu && rf_moment_is_now(step->self, last)))
            left &= ~RF_WORD_M(list[i]);
        else if (!writes && r != w && !rf_step_replaces(step, r, 1))
            return false;
    }
    unsigned rest = left; /* what no slice has was never accessed */
    for (unsigned i = 0; i < count; i++) {
        uint64_t slice = list[i];
        unsigned met = slice & RF_WRITES_BIT ? 0 : RF_WORD_M(slice) & left; /* atomic ones were not met */
        if (met)
            put_bytes(made, &made_count, met, RF_WORD(0, y, writes ? y : RF_WORD_X(slice)));
        slice &= ~((uint64_t)met << 56);
        rest &= ~met;
        if (RF_WORD_M(slice))
            list[kept++] = slice;
    }
    if (rest)
        put_bytes(made, &made_count, rest, RF_WORD(0, y, writes ? y : 0));
    for (unsigned i = 0; i < made_count; i++)
        y = put_slice(place, list, &kept, made[i], step);
    if (kept <= 3 && as_word_of(y, list, kept, next))
        return true;
    for (unsigned i = 0; i < kept && kept == 2; i++) /* the other one, beside a pair */
        if (RF_WORD_Y(list[i]) != y && as_word_of(RF_WORD_Y(list[i]), list, kept, next))
            return true;
    *next = put_units(step->stripe, word, list, kept);
    return true;
}

/* W's moment after a write now, when it was w; tells a race of the two (Algorithm 11). */
static uint32_t accu_write(struct rf_step *step, uint32_t w)
{
    if (rf_step_ordered(step, w))
        return step->now;
    rf_lockset common = rf_step_common(step, w, true);
    if (!common)
        rf_step_race(step, w, true);
    return common == rf_step_locks(step, true) ? step->now : rf_accu_several(step->self, step->now, common | AL_SEVERAL);
}

/* All bytes were last written in w; those in m were read in y since. What the read leaves of y's and w's goes into *x. */
static bool accu_reads(const struct rf_step *step, unsigned mask, unsigned m, uint32_t y, uint32_t *x)
{
    if (!m)
        return true;
    if (!rf_step_mine(step, y) || rf_moment_is_now(step->self, y))
        return false;
    return !(m & ~mask) || ((m | mask) == 0xff && (*x = rf_cell_named(*x, y)));
}

bool rf_word_accu(struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
{
    bool read_since = !(word & RF_WRITES_BIT);
    unsigned m = RF_WORD_M(word);
    uint32_t y = RF_WORD_Y(word), w = read_since ? RF_WORD_X(word) : y, x = w;
    step->race = 0;
    step->made = 0;
    if ((word & RF_ODD_BIT) || (!read_since && m != 0xff) || rf_cell_is_pair(w) || rf_moment_is_now(step->self, w))
        return false;
    step->old = word;
    step->race_mask = !read_since || m == 0xff ? 0xff : m & mask ? m : ~m & 0xff;
    if (step->flags & RF_A_WRITE) {
        if (read_since && m != 0xff)
            return false;
        if (mask != 0xff && read_since && !(x = rf_cell_named(w, y)))
            return false;
        uint32_t written = accu_write(step, w);
        *next = RF_WORD(mask, written, mask == 0xff ? 0 : x) | RF_WRITES_BIT;
        step->made = step->race || written == step->now ? *next : 0; /* else the lockset is the order's doing, and not the race */
        if (read_since && !step->race && rf_step_races_with(step, y, false))
            rf_step_race(step, y, false);
        return true;
    }
    if (read_since && !accu_reads(step, mask, m, y, &x))
        return false;
    step->made = *next = RF_WORD(mask, step->now, mask == 0xff ? w : x);
    if (rf_step_races_with(step, w, true))
        rf_step_race(step, w, true);
    return true;
}

/* The read does not race with the last write, which the map came after. */
static bool map_passes(const struct rf_step *step, struct rf_readers *readers, uint32_t w)
{
    uint32_t locks = step->flags & RF_A_TXN ? 0 : rf_moment_locks(step->now);
    if (rf_moment_is_now(step->self, w))
        return false;
    if ((locks && locks == readers->passes) || rf_step_ordered(step, w))
        return true;
    if (!rf_step_common(step, w, true))
        return false;
    if (locks <= UINT16_MAX) /* the write's locks are far away: next time they are not asked for */
        readers->passes = (uint16_t)locks;
    return true;
}

/* The lock of the map is held. There is room for an entry, or one that it replaces. */
static bool map_has_room(const struct rf_step *step, struct rf_readers *readers)
{
    for (uint32_t i = 0; i < readers->count && readers->count == RF_FEW && !readers->is_many; i++)
        if (rf_step_mine(step, readers->few[i]))
            return true;
    return readers->count < RF_FEW;
}

bool rf_accu_reads_map(const uint64_t *place, uint64_t word, unsigned mask, const struct rf_step *step)
{
    struct rf_readers *readers = rf_readers_at(RF_WORD_Y(word));
    if (!rf_word_has_map(word) || RF_WORD_M(word) != mask || !rf_readers_try_lock(readers))
        return false;
    bool allowed = __atomic_load_n(place, __ATOMIC_ACQUIRE) == word && !readers->is_many && map_has_room(step, readers) &&
                   map_passes(step, readers, RF_WORD_X(word));
    if (allowed)
        rf_accu_put(step, RF_WORD_Y(word));
    rf_readers_unlock(readers);
    return allowed;
}

static bool is_replaced(uint32_t moment, const struct rf_step *step)
{
    return rf_step_replaces(step, moment, 1) && (step->flags & RF_A_WRITE || !conflicts(moment, 0));
}

/* An atomic access to the same bytes as the last ones, with all that it conflicts with ordered: it takes the place of those before it, or
 * joins them. */
static bool atomic_quick(uint64_t word, unsigned mask, const struct rf_step *step, uint64_t *next)
{
    *next = word;
    uint64_t *record = rf_record_at(RF_WORD_X(word), RF_WORD_M(word)), *mine = NULL;
    bool writes = step->flags & RF_A_WRITE;
    for (unsigned i = 0; i < RF_WORD_M(word); i++) {
        uint64_t slice = record[i];
        if (!(RF_WORD_M(slice) & mask))
            continue;
        if (slice & RF_WRITES_BIT) {
            if (RF_WORD_M(slice) != mask)
                return false;
            mine = &record[i];
        } else if (!rf_step_ordered(step, RF_WORD_X(slice)) ||
                   (writes && ((slice & RF_ODD_BIT) || !rf_step_ordered(step, RF_WORD_Y(slice))))) {
            return false;
        }
    }
    if (!mine)
        return false;
    uint32_t y = RF_WORD_Y(*mine), other = RF_WORD_X(*mine), set = 0;
    if (*mine & RF_ODD_BIT) {
        struct rf_readers *readers = rf_readers_at(y);
        set = y;
        remove_replaced(set, step);
        if (readers->count <= 1) {
            other = readers->count ? rf_readers_list(readers)[0] : 0;
            rf_readers_end(step->stripe, set);
            set = 0;
        }
    } else {
        if (other && is_replaced(other, step))
            other = 0;
        if (other && !is_replaced(y, step)) {
            set = rf_readers_new(step->stripe);
            rf_readers_add(set, other);
            rf_readers_add(set, y);
        } else if (!other && !is_replaced(y, step)) {
            other = y;
        }
    }
    if (set)
        rf_readers_add(set, step->now);
    uint64_t slice = set ? RF_WORD(mask, set, 0) | RF_ODD_BIT : RF_WORD(mask, step->now, other);
    __atomic_store_n(mine, slice | RF_WRITES_BIT, __ATOMIC_RELAXED);
    return true;
}

bool rf_word_atomic_quick(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
{
    unsigned code = rf_atomic_code(mask), m = RF_WORD_M(word);
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), now = step->now, plain = 0, other = 0;
    if (!code)
        return false;
    if (rf_word_is_atomic(word)) {
        if ((m & 15) != code)
            return false;
        other = is_replaced(y, step) ? 0 : y;
        if (m >= RF_ATOMIC_ONE) {
            plain = x;
        } else if (!is_replaced(x, step)) {
            if (other)
                return false;
            other = x;
        }
    } else if (word & RF_ODD_BIT) {
        return false;
    } else if (word & RF_WRITES_BIT) {
        plain = y;
        if (m != 0xff)
            return false;
    } else if (word) {
        plain = x;
        if (m) /* a read, which stays beside it */
            return false;
    }
    if (rf_cell_is_pair(plain) || !rf_step_ordered(step, plain) || (plain && other))
        return false;
    *next = (other ? RF_WORD(RF_ATOMIC_TWO | code, now, other) : RF_WORD(RF_ATOMIC_ONE | code, now, plain)) | RF_ODD_BIT |
            RF_WRITES_BIT;
    return true;
}

bool rf_locked_quick(const uint64_t *place, const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
{
    if (step->flags & RF_A_ATOMIC)
        return rf_word_is_record(word) && atomic_quick(word, mask, step, next);
    if (rf_word_is_atomic(word) || rf_word_has_two(word))
        return false;
    return plain_quick(place, word, mask, step, next);
}
