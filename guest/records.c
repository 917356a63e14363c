#include "guest/records.h"

#include "guest/policy.h"

/* The access, with a moment from the time on when one is needed. */
struct access {
    struct rf_step step;
    uint64_t key;
};

static inline bool has_moment(struct access *access)
{
    return (access->step.now = rf_moment_at_hand(access->step.self, access->key)) != 0;
}

static bool put_in_set(uint32_t set, struct access *access)
{
    struct rf_readers *readers = rf_readers_at(set);
    if (readers->is_many)
        return false;
    if (rf_set_has_now(readers))
        return true;
    return has_moment(access) && rf_set_replace(set, &access->step); /* first: nothing may leave that it does not take the place of */
}

/* A slice that is plain, like all that this file changes. */
static inline bool is_plain(uint64_t slice)
{
    return !(slice & (RF_ODD_BIT | RF_WRITES_BIT));
}

/* Whether the rules for one epoch, or a set, are all that the slices of these bytes need, and each is of them alone: no bytes are without a
 * history, none has atomic accesses, nothing races. A write makes them one: then there may be no more. */
static bool fits(const uint64_t *record, unsigned count, unsigned mask, const struct access *access)
{
    bool writes = access->step.flags & RF_A_WRITE;
    unsigned covered = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned bytes = RF_WORD_M(record[i]);
        if (!(bytes & mask))
            continue;
        if ((record[i] & RF_WRITES_BIT) || (bytes & ~mask) || (writes && (bytes != mask || !is_plain(record[i]))))
            return false;
        if (!rf_step_ordered(&access->step, RF_WORD_X(record[i])) ||
            (is_plain(record[i]) && !rf_step_ordered(&access->step, RF_WORD_Y(record[i]))))
            return false;
        covered |= bytes;
    }
    return covered == mask;
}

/* Invariant 2: of two slices, the one that is not accessed now will be equal to the other, or was only written, as the other will be. Where
 * there are more they stay apart: what is accessed apart in one epoch is so in the next. */
static bool shrinks(const uint64_t *record, unsigned count, unsigned mask, bool writes)
{
    if (count != 2)
        return false;
    unsigned mine = RF_WORD_M(record[0]) & mask ? 0 : 1;
    uint64_t other = record[!mine];
    if ((RF_WORD_M(other) & mask) || !is_plain(other))
        return false;
    uint32_t w = RF_WORD_X(other), r = RF_WORD_Y(other);
    return writes ? w == r : rf_moment_is_hot(r) && w == RF_WORD_X(record[mine]);
}

static bool step_record(uint64_t *record, unsigned count, unsigned mask, struct access *access)
{
    bool writes = access->step.flags & RF_A_WRITE;
    if (!fits(record, count, mask, access))
        return false;
    for (unsigned i = 0; i < count; i++) {
        uint32_t w = RF_WORD_X(record[i]), r = RF_WORD_Y(record[i]);
        if (!(RF_WORD_M(record[i]) & mask))
            continue;
        if (!is_plain(record[i])) {
            if (!put_in_set(r, access))
                return false; /* what was changed before stays: it is what the other way would do first */
            continue;
        }
        if (rf_moment_is_hot(writes ? w : r))
            continue;
        if (shrinks(record, count, mask, writes) || !has_moment(access))
            return false;
        uint32_t now = access->step.now;
        __atomic_store_n(&record[i], RF_WORD(RF_WORD_M(record[i]), now, writes ? now : w), __ATOMIC_RELAXED);
    }
    return true;
}

static bool step_map(uint64_t word, unsigned mask, struct access *access)
{
    uint32_t w = RF_WORD_X(word);
    return !(access->step.flags & RF_A_WRITE) && RF_WORD_M(word) == mask && !rf_cell_is_pair(w) &&
           rf_step_ordered(&access->step, w) && put_in_set(RF_WORD_Y(word), access);
}

bool rf_units_access(struct rf_self *self, uint64_t *place, uint64_t word, unsigned mask, uintptr_t pc, unsigned size,
                     unsigned flags)
{
    struct access access = { .step = { .self = self, .flags = flags }, .key = rf_access_key(pc, flags, size) };
    unsigned count = RF_WORD_M(word);
    bool record = rf_word_is_record(word), stepped = false;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS || rf_accu || (record ? count > RF_RECORD_FEW || !count : !rf_word_has_map(word)), 0))
        return false;
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    if (__atomic_load_n(place, __ATOMIC_RELAXED) == word)
        stepped =
            record ? step_record(rf_record_at(RF_WORD_X(word), count), count, mask, &access) : step_map(word, mask, &access);
    rf_spin_unlock(&stripe->lock);
    return stepped;
}
