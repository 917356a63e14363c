/* The step of an atomic access to bytes that were last accessed atomically, and no others of their granule: where atomics are used, nearly
 * all. One straight way, as guest/first_access.h is for plain accesses: it makes what step_atomic_access() (guest/access.c) would make, and
 * leaves all other cases, and AccuLock's, to that.
 */
#ifndef RF_GUEST_FIRST_ATOMIC_H
#define RF_GUEST_FIRST_ATOMIC_H

#include "guest/steps.h"

/* The moment of the access is at hand, and one of this epoch. 0: ask others. */
static inline __attribute__((always_inline)) uint32_t rf_atomic_moment(struct rf_self *self, uint64_t key)
{
    uint32_t node = rf_hot.top > self->frames ? rf_hot.top[-1].node : 0;
    if (__builtin_expect(!node, 0)) /* the first access in a function that was entered */
        node = rf_depot_node(self);
    struct rf_cached_moment *cached = rf_moment_cached(self, key, node);
    if (__builtin_expect(!node || cached->what != key || cached->below != node, 0))
        return 0;
    if (rf_moment_is_hot(cached->moment) && rf_moment_locks(cached->moment) == self->locks)
        return cached->moment;
    if (__builtin_expect(rf_moment_is_last(self), 0))
        return 0;
    return cached->moment = rf_moment_take_hot(self, cached->note, self->locks);
}

/* The thread is busy. The access lies in one granule, and its size is a power of two. false: nothing was done. If it repeats one of the epoch
 * it takes the place of that. */
static inline __attribute__((always_inline)) bool rf_atomic_step(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags,
                                                                 uintptr_t pc)
{
    const uint64_t form = RF_WORD(RF_ATOMIC_TWO, 0, 0) | RF_ODD_BIT | RF_WRITES_BIT;
    const uint64_t others = RF_WORD(RF_ATOMIC_ONE ^ RF_ATOMIC_TWO, RF_MOMENT_MASK, RF_MOMENT_MASK);
    uint64_t code = (RF_GRANULE + addr % RF_GRANULE) >> __builtin_ctzl(size); /* rf_atomic_code(), if they are aligned */
    uint64_t *place = rf_word(addr), word = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    struct rf_step step = { .self = self, .flags = flags, .fasttrack = true };
    if (__builtin_expect((word & ~others) != (form | code << 56) || (addr & (size - 1)) || rf_accu, 0) ||
        !(step.now = rf_atomic_moment(self, rf_access_key(pc, flags, size))) || !rf_word_atomic_again(&step, word, &next) ||
        !__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    rf_touch(place);
    return true;
}

/* One of this epoch, of bytes beside which others have histories of their own. The thread is busy. */
static inline bool rf_atomic_repeats_in_units(uintptr_t addr, size_t size, unsigned flags)
{
    const uint64_t *place = rf_word(addr);
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    return rf_hot.span && rf_word_has_units(word) && rf_word_repeats(place, word, ((1u << size) - 1) << addr % RF_GRANULE, flags);
}

/* An atomic access that is no more than that. The thread is not busy, and rf_atomics_straight. */
static inline __attribute__((always_inline)) void rf_atomic_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags,
                                                                   uintptr_t pc)
{
    uint64_t word = __atomic_load_n(rf_word(addr), __ATOMIC_RELAXED);
    bool one = addr % RF_GRANULE + size <= RF_GRANULE;
    if (one && rf_hot.span && rf_word_atomic_repeats(word, ((1u << size) - 1) << addr % RF_GRANULE, flags & RF_A_WRITE))
        return;
    rf_busy_begin(self);
    bool stepped = one && (rf_atomic_step(self, addr, size, flags, pc) || rf_atomic_repeats_in_units(addr, size, flags));
    rf_busy_end(self);
    if (__builtin_expect(!stepped, 0))
        rf_access(addr, size, flags, pc);
}

#endif
