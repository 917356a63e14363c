/* Memory that comes and goes: its history is forgotten, or begins with a write, or ends with one. See guest/access.h.
 *
 * 1. A word that has a history lies in a patch that is marked (rf_touched()): sweeps look at no other. clear_words() argues the order.
 */
#include "guest/access.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest/objects.h"
#include "guest/seen.h"
#include "guest/steps.h"
#include "guest/sweep.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/transactions.h"

void rf_word_clear(uint64_t *place)
{
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    while (word && !rf_word_has_units(word))
        if (__atomic_compare_exchange_n(place, &word, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return;
    if (!word)
        return;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS, 0))
        rf_policy_clear(place, 0xff);
    if (__builtin_expect(rf_multi, 0)) {
        rf_multi_clear(place, 0xff);
        return;
    }
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    word = rf_lanes_settled(place);
    rf_word_hold(word);
    if (rf_word_has_units(word)) {
        struct rf_slices slices;
        struct rf_step step = { .stripe = stripe };
        rf_slices_of(word, &slices);
        __atomic_store_n(place, 0, __ATOMIC_RELEASE); /* before its units are others' */
        rf_word_end_record(stripe, word);
        rf_slices_end(&slices, &step);
    }
    __atomic_store_n(place, 0, __ATOMIC_RELEASE);
    rf_word_let_go(word);
    rf_spin_unlock(&stripe->lock);
}

/* Some bytes of a granule are new, the others are not. */
static void clear_bytes(uint64_t *place, unsigned mask)
{
    if (!__atomic_load_n(place, __ATOMIC_RELAXED))
        return;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS, 0))
        rf_policy_clear(place, mask);
    if (__builtin_expect(rf_multi, 0)) {
        rf_multi_clear(place, mask);
        return;
    }
    struct rf_stripe *stripe = rf_stripe_of(place);
    struct rf_step step = { .stripe = stripe, .self = rf_hot.self };
    rf_spin_lock(&stripe->lock);
    uint64_t word = rf_lanes_settled(place), held = word;
    rf_word_hold(held);
    for (;;) {
        uint64_t next = rf_word_without(&step, word, mask), old = word;
        if (__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            rf_record_end_unless(stripe, old, next);
            break;
        }
        rf_word_end_record(stripe, next); /* only a word without units can have changed under us */
    }
    rf_word_let_go(held);
    rf_spin_unlock(&stripe->lock);
}

/* The bits of several words, or of one: does one of them name units? */
static inline bool may_have_units(uint64_t words)
{
    return (words & RF_ODD_BIT) || (words & RF_LANES_FIRST) == RF_LANES_FIRST;
}

static inline void set_word(uint64_t *place, uint64_t word)
{
    if (__builtin_expect(may_have_units(*place), 0))
        rf_word_clear(place);
    if (*place | word)
        __atomic_store_n(place, word, __ATOMIC_RELAXED);
}

typedef uint64_t two_words __attribute__((vector_size(16)));

/* Of memory that is new, so that nobody has it yet. An access by whoever had it before, and still uses it, may be forgotten with the
 * rest; if it is just then making units for the word, they are lost. */
static void set_words(uint64_t *from, uint64_t *to, uint64_t word)
{
    two_words both = { word, word };
    for (; from < to && (uintptr_t)from % sizeof both; from++)
        set_word(from, word);
    for (; from + 8 <= to; from += 8) { /* halves of vectors are written at once, which is all that anybody needs */
        two_words *twos = (two_words *)from, any = twos[0] | twos[1] | twos[2] | twos[3];
        uint64_t bits = any[0] | any[1];
        if (!(bits | word)) /* a page that is only looked at needs no memory */
            continue;
        if (__builtin_expect(may_have_units(bits), 0))
            for (unsigned i = 0; i < 8; i++)
                rf_word_clear(&from[i]);
        for (unsigned i = 0; i < 4; i++)
            twos[i] = both;
    }
    for (; from < to; from++)
        set_word(from, word);
}

#define GIVE_BACK (RF_PATCH * 4) /* ranges of words from here on go back to the kernel */

/* A patch is marked as untouched first. Whoever sets a word of it in the meantime (a mapping that took the place of one whose history
 * goes late) touches the patch afterwards: so either the word is cleared here, or the mark comes back. A mark without a word costs
 * a look; a word without a mark would be passed over by sweeps, and name somebody else's moment one day. */
static void clear_words(uint64_t *from, uint64_t *to, bool give_back)
{
    for (uint64_t *next; from < to; from = next) {
        next = (uint64_t *)(((uintptr_t)from | (RF_PATCH - 1)) + 1);
        uint8_t *touched = rf_touched(from);
        bool whole = next <= to && !((uintptr_t)from & (RF_PATCH - 1));
        if (next > to)
            next = to;
        if (!*touched)
            continue;
        if (whole && give_back) {
            __atomic_store_n(touched, 0, __ATOMIC_RELAXED);
            __atomic_thread_fence(__ATOMIC_SEQ_CST);
        }
        if (__builtin_expect(rf_pacer, 0))
            rf_pacer_clear(from, next);
        else
            set_words(from, next, 0);
        if (whole && give_back)
            RF_SYSCALL(SYS_madvise, from, (char *)next - (char *)from, MADV_DONTNEED);
    }
}

void rf_range_clear(uintptr_t addr, size_t size)
{
    struct rf_self *self = rf_hot.self;
    if (!self || !size || self->busy)
        return;
    if (__builtin_expect(rf_tap != NULL, 0) && rf_tap_memory(self, RF_ALLOC, addr, size, 0))
        return;
    uintptr_t end = addr + size;
    rf_seen_forget();
    if (__builtin_expect(rf_pacer, 0) && rf_pacer_knows_nothing(addr, size))
        return;
    rf_busy_begin(self);
    if (addr % RF_GRANULE) {
        unsigned mask = 0xffu << addr % RF_GRANULE & 0xff;
        if (end < (addr | (RF_GRANULE - 1)) + 1)
            mask &= (1u << end % RF_GRANULE) - 1;
        clear_bytes(rf_word(addr), mask);
        addr = (addr | (RF_GRANULE - 1)) + 1;
    }
    if (addr < end && end % RF_GRANULE) {
        clear_bytes(rf_word(end), (1u << end % RF_GRANULE) - 1);
        end &= ~(uintptr_t)(RF_GRANULE - 1);
    }
    if (addr < end)
        clear_words(rf_word(addr), rf_word(addr) + (end - addr) / RF_GRANULE, end - addr >= GIVE_BACK);
    rf_busy_end(self);
}

uint32_t rf_range_fresh(uintptr_t addr, size_t size, size_t written, uintptr_t pc)
{
    struct rf_self *self = rf_hot.self;
    written &= ~(size_t)(RF_GRANULE - 1);
    if (!self || self->busy || self->inside || self->ignore_writes || !written) {
        rf_range_clear(addr, size);
        return 0;
    }
    if (__builtin_expect(self->in_txn, 0))
        rf_txn_new_memory(self, addr, size);
    if (__builtin_expect(rf_tap != NULL, 0) && rf_tap_memory(self, RF_ALLOC, addr, size, pc)) {
        rf_tap_access(self, addr, written, RF_A_WRITE, pc);
        return 0;
    }
    if (__builtin_expect(rf_detour, 0) && rf_pacer_outside()) {
        rf_range_clear(addr, size);
        return 0;
    }
    rf_busy_begin(self);
    uint32_t now = rf_moment_now(self, pc, RF_A_WRITE, written);
    uint64_t word = now ? RF_WORD(0xff, now, 0) | RF_WRITES_BIT : 0, *from = rf_word(addr), *to = from + written / RF_GRANULE;
    set_words(from, to, word);
    rf_touch_range(from, to);
    rf_busy_end(self);
    if (size > written)
        rf_range_clear(addr + written, size - written);
    if (__builtin_expect(self->wants_sweep, 0))
        rf_sweep(self);
    if (__builtin_expect(self->in_txn, 0))
        rf_epoch_begin(self); /* accesses to it belong to the transaction */
    return now ? rf_moment_note(now) : 0;
}

uint32_t rf_range_free(uintptr_t addr, size_t size, uintptr_t pc)
{
    struct rf_self *self = rf_hot.self;
    if (!self || self->busy)
        return 0;
    if (rf_is_ignored(self, RF_A_WRITE)) {
        rf_objects_forget(addr, size); /* a lock that lay there is no more, whoever looks */
        return 0;
    }
    if (__builtin_expect(self->in_txn, 0)) { /* libitm's doing, at a commit or a roll-back; what the program frees guest/itm.c tells */
        rf_txn_new_memory(self, addr, size);
        rf_objects_forget(addr, size);
        return 0;
    }
    if (__builtin_expect(rf_tap != NULL, 0) && rf_tap_memory(self, RF_FREE, addr, size, pc)) {
        rf_objects_forget(addr, size);
        return 0;
    }
    if (__builtin_expect(rf_detour, 0) && rf_pacer_outside()) {
        rf_seen_forget();
        if (!rf_pacer_knows_nothing(addr, size))
            rf_pacer_access(self, addr, size, RF_A_WRITE | RF_A_FREE, pc);
        rf_objects_forget(addr, size);
        return 0;
    }
    rf_seen_forget(); /* the block's next owner makes its history forget what this thread has done in this epoch */
    struct rf_step step = { .self = self, .flags = RF_A_WRITE | RF_A_FREE };
    rf_busy_begin(self);
    step.now = rf_moment_now(self, pc, step.flags, size);
    uint32_t note = step.now ? rf_moment_note(step.now) : 0;
    uint64_t word = RF_WORD(0xff, step.now, 0) | RF_WRITES_BIT, *place = rf_word(addr);
    uintptr_t at = addr;
    /* What this thread wrote in this epoch it may overwrite without a look: whoever comes between saw that it was written. */
    for (; step.now && at % RF_GRANULE == 0 && at + RF_GRANULE <= addr + size; at += RF_GRANULE, place++) {
        uint64_t old = __atomic_load_n(place, __ATOMIC_RELAXED);
        if (!rf_word_repeats_plainly(old, 0xff, RF_A_WRITE))
            break;
        /* pacer: who thinks that no period has begun may be forgetting it, and its line */
        if (__builtin_expect(!rf_pacer, 1))
            __atomic_store_n(place, word, __ATOMIC_RELAXED);
        else if (!__atomic_compare_exchange_n(place, &old, word, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            break;
    }
    rf_busy_end(self);
    rf_access(at, addr + size - at, step.flags, pc);
    rf_objects_forget(addr, size);
    return note;
}

bool rf_range_touched(uintptr_t addr, size_t size)
{
    const uint8_t *last = rf_touched(rf_word(addr + size - 1));
    for (const uint8_t *patch = rf_touched(rf_word(addr)); patch <= last; patch++)
        if (*patch)
            return true;
    return false;
}

void rf_range_return(uintptr_t addr, size_t size)
{
    rf_range_clear(addr, size);
    rf_objects_forget(addr, size);
}
