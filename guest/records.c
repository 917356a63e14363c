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

/* The thread's moment takes the place of those in a set that happen before it (rf_step_put). Who looks without the lock finds one of its own
 * that was there, or that is (guest/units.h, 2 and 3). */
static bool put_in_set(uint32_t set, struct access *access)
{
    struct rf_readers *readers = rf_readers_at(set);
    uint32_t *list = readers->few, place = RF_FEW;
    if (readers->is_many)
        return false;
    for (uint32_t i = 0; i < readers->count; i++)
        if (rf_moment_is_hot(list[i]))
            return true;
    if (!has_moment(access)) /* first: nothing may leave that it does not take the place of */
        return false;
    for (uint32_t i = readers->count; i-- > 0;) {
        if (!rf_step_ordered(&access->step, list[i]))
            continue;
        if (place < RF_FEW)
            rf_readers_remove(set, place); /* the last one of the list comes here, and has been looked at */
        place = i;
    }
    if (place == RF_FEW)
        return false;
    __atomic_store_n(&list[place], access->step.now, __ATOMIC_RELAXED);
    return true;
}

/* A slice that is plain, like all that this file changes. */
static inline bool is_plain(uint64_t slice)
{
    return !(slice & (RF_ODD_BIT | RF_WRITES_BIT));
}

/* The slice of just these bytes. NULL: there is none, or atomic accesses are beside it. */
static uint64_t *slice_of(uint64_t *record, unsigned count, unsigned mask)
{
    uint64_t *found = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (!(RF_WORD_M(record[i]) & mask))
            continue;
        if (RF_WORD_M(record[i]) != mask || (record[i] & RF_WRITES_BIT))
            return NULL;
        found = &record[i];
    }
    return found;
}

/* Invariant 2, of what a slice becomes when it was last written in w: another one may become equal to it, or what is left is two writes. */
static bool shrinks(const uint64_t *record, unsigned count, const uint64_t *changed, bool writes, uint32_t w)
{
    for (unsigned i = 0; i < count; i++) {
        uint32_t other_w = RF_WORD_X(record[i]), other_r = RF_WORD_Y(record[i]);
        if (&record[i] == changed || !is_plain(record[i]))
            continue;
        if (rf_moment_is_hot(other_r) && other_w == (writes ? other_r : w))
            return true;
        if (writes && count == 2 && other_w == other_r)
            return true;
    }
    return false;
}

static bool step_record(uint64_t *record, unsigned count, unsigned mask, struct access *access)
{
    bool writes = access->step.flags & RF_A_WRITE;
    uint64_t *slice = slice_of(record, count, mask);
    if (!slice)
        return false;
    uint32_t w = RF_WORD_X(*slice), r = RF_WORD_Y(*slice);
    if (!rf_step_ordered(&access->step, w))
        return false;
    if (!is_plain(*slice))
        return !writes && put_in_set(r, access);
    if (!rf_step_ordered(&access->step, r))
        return false;
    if (rf_moment_is_hot(writes ? w : r))
        return true;
    if (shrinks(record, count, slice, writes, w) || !has_moment(access))
        return false;
    uint32_t now = access->step.now;
    __atomic_store_n(slice, RF_WORD(mask, now, writes ? now : w), __ATOMIC_RELAXED);
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
    if (__builtin_expect(rf_policy != RF_POLICY_CAS || rf_accu || (record && (count > RF_RECORD_FEW || !count)), 0))
        return false;
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    if (__atomic_load_n(place, __ATOMIC_RELAXED) == word)
        stepped =
            record ? step_record(rf_record_at(RF_WORD_X(word), count), count, mask, &access) : step_map(word, mask, &access);
    rf_spin_unlock(&stripe->lock);
    return stepped;
}
