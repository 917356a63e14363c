#include "guest/multi.h"

#include "detect/kinds.h"
#include "guest/memory.h"
#include "guest/nearby.h"
#include "guest/steps.h"
#include "guest/transactions.h"

#define LIST_FEW 24u
#define OF_CHAIN (RF_RECORD_MOST - 1) /* accesses in each record of a chain */

struct multi_access {
    uint32_t moment;
    uint8_t mask;
    uint8_t kind; /* ML_... */
};

/* The history of a granule, outside of it. */
struct multi_list {
    uint32_t count, cap;
    struct multi_access *items; /* few, or memory of its own */
    uint32_t joined;            /* the moment that the access now is one with; 0: it has its own, or was left out */
    bool changed;
    struct multi_access few[LIST_FEW];
};

static void list_begin(struct multi_list *list)
{
    list->count = 0;
    list->cap = LIST_FEW;
    list->items = list->few;
}

static void list_end(struct multi_list *list)
{
    if (list->items != list->few)
        rf_give(list->items, list->cap * sizeof *list->items);
}

static __attribute__((noinline)) void list_grow(struct multi_list *list)
{
    uint32_t cap = 4 * list->cap;
    struct multi_access *items = rf_take(cap * sizeof *items);
    memcpy(items, list->items, list->count * sizeof *items);
    list_end(list);
    list->items = items;
    list->cap = cap;
}

static inline void list_append(struct multi_list *list, uint32_t moment, unsigned mask, unsigned kind)
{
    if (__builtin_expect(list->count == list->cap, 0))
        list_grow(list);
    list->items[list->count] = (struct multi_access){ moment, (uint8_t)mask, (uint8_t)kind };
    list->count += moment && mask;
}

/* ---- the rules ---- */

static bool is_of_transaction(uint32_t moment)
{
    return rf_txn_used && (rf_note_flags(rf_moment_note(moment)) & RF_A_TXN);
}

/* Invariant 7. What another thread's step finds of its own is not for this one's table of places. */
static bool is_one_with(const struct rf_step *step, const struct multi_access *item, unsigned kind)
{
    if (item->kind != kind || item->moment == step->now)
        return item->kind == kind;
    return kind <= ML_READ && step->self == rf_hot.self && rf_moment_is_now(step->self, item->moment) &&
           rf_moment_locks(item->moment) == rf_moment_locks(step->now) && !(step->flags & (RF_A_TXN | RF_A_FREE)) &&
           !is_of_transaction(item->moment);
}

static void list_add(const struct rf_step *step, struct multi_list *list, unsigned kind, unsigned mask)
{
    list->changed = true;
    for (uint32_t i = list->count; i-- > 0;)
        if (is_one_with(step, &list->items[i], kind)) {
            list->items[i].mask |= (uint8_t)mask;
            list->joined = list->items[i].moment;
            return;
        }
    list_append(list, step->now, mask, kind);
}

static bool meets(struct rf_step *step, const struct multi_access *item)
{
    step->race_mask = item->mask;
    return rf_step_race(step, item->moment, item->kind & (ML_WRITE | ML_STORE));
}

#define ML(name) mlm_##name
#define ML_STATE struct rf_step
#define ML_THREAD struct rf_step
#define ML_CELL struct multi_list
#define ML_LIST struct multi_list
#define ML_ITEM struct multi_access
#define ML_WRITES(cell, kinds) (cell)
#define ML_READS(cell, kinds) ((struct multi_list *)NULL)
#define ML_ITEMS(list) ((list)->items)
#define ML_IS(item, kinds) ((item)->kind & (kinds))
#define ML_PARTS(item) ((unsigned)(item)->mask)
#define ML_LEAVE(item, parts) (((item)->mask &= (uint8_t) ~(parts)) != 0)
#define ML_IS_NOW(t, item) rf_moment_is_now((t)->self, (item)->moment)
#define ML_ORDERED(t, item) rf_step_ordered(t, (item)->moment)
#define ML_LOCKS(d, item) rf_accu_locks((d)->self, (item)->moment, (item)->kind &(ML_WRITE | ML_STORE))
#define ML_HELD(d, t, kind) rf_step_locks(t, (kind) & (ML_WRITE | ML_STORE))
#define ML_SUBSET(d, a, b) is_subset(d, a, b)
#define ML_DISJOINT(d, a, b) (!(b) || !rf_locks_common((d)->self, a, b))
#define ML_COMMON(d, a, b) rf_locks_common((d)->self, a, b)
#define ML_MOST(d) rf_locks_most()
#define ML_SLOT(item) rf_moment_slot((item)->moment)
#define ML_TIME(item) rf_moment_time((item)->moment)
#define ML_MY_SLOT(t) ((t)->self->thread.slot)
#define ML_RACE(d, t, item, kinds) meets(d, item)
#define ML_ADD(d, t, cell, kind, parts, note) list_add(d, cell, kind, parts)
#define ML_COUNT(d, kind, redundant) ((void)(d))

static inline bool is_subset(const struct rf_step *step, rf_lockset a, rf_lockset b)
{
    return !a || a == b || rf_locks_common(step->self, a, b) == a;
}

#include "detect/multilock.inc"

static unsigned access_kind(unsigned flags)
{
    return flags & RF_A_ATOMIC ? flags & RF_A_WRITE ? ML_STORE : ML_LOAD : flags & RF_A_WRITE ? ML_WRITE : ML_READ;
}

/* A free leaves nothing of what was before it: its memory has no history but that it was freed, until it is new. */
static void list_forget(struct multi_list *list, unsigned mask)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        list->items[i].mask &= (uint8_t)~mask;
        if (list->items[i].mask)
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

static void list_step(struct rf_step *step, struct multi_list *list, unsigned mask)
{
    list->changed = false;
    list->joined = 0;
    step->race = 0;
    mlm_access(step, step, list, access_kind(step->flags), mask, 0);
    if (__builtin_expect(step->flags & RF_A_FREE, 0)) {
        list_forget(list, mask);
        list_add(step, list, ML_WRITE, mask);
    }
}

/* ---- lists and words ---- */

static unsigned atomic_kind(uint32_t moment)
{
    return rf_note_flags(rf_moment_note(moment)) & RF_A_WRITE ? ML_STORE : ML_LOAD;
}

static uint64_t place_of(const struct multi_access *item)
{
    bool atomic = item->kind & (ML_STORE | ML_LOAD), writes = item->kind & (ML_WRITE | ML_STORE);
    return RF_WORD(item->mask, item->moment, writes ? item->moment : 0) | (atomic ? RF_WRITES_BIT : 0);
}

static void append_place(struct multi_list *list, uint64_t place)
{
    unsigned kind = RF_WORD_X(place) ? ML_WRITE : ML_READ;
    list_append(list, RF_WORD_Y(place), RF_WORD_M(place), place & RF_WRITES_BIT ? kind << 2 : kind);
}

static void list_of_record(uint64_t word, struct multi_list *list)
{
    unsigned m = RF_WORD_M(word);
    const uint64_t *record = rf_record_at(RF_WORD_X(word), m);
    if (__builtin_expect(m < RF_MULTI_CHAIN, 1)) {
        for (unsigned i = 0; i < m; i++)
            append_place(list, record[i]);
        return;
    }
    for (uint32_t number = RF_WORD_X(word); number; number = RF_WORD_X(record[OF_CHAIN])) {
        record = rf_record_at(number, m);
        for (unsigned i = 0; i < OF_CHAIN; i++)
            append_place(list, record[i]);
    }
}

/* A record only with the stripe's lock. */
static void list_of(uint64_t word, struct multi_list *list)
{
    unsigned m = RF_WORD_M(word);
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word);
    list_begin(list);
    if (rf_word_is_record(word)) {
        list_of_record(word, list);
    } else if (rf_word_is_atomic(word)) {
        bool two = m < RF_ATOMIC_ONE;
        list_append(list, x, two ? rf_atomic_mask(word) : 0xff, two ? atomic_kind(x) : ML_WRITE);
        list_append(list, y, rf_atomic_mask(word), atomic_kind(y));
    } else {
        bool pair = rf_cell_is_pair(x), writes = word & RF_WRITES_BIT, two = !writes && m == 0xff;
        list_append(list, rf_cell_w(x), writes ? ~m & 0xff : 0xff, ML_WRITE);
        list_append(list, rf_cell_r(x), !pair ? 0 : two ? 0xff : ~m & 0xff, ML_READ);
        list_append(list, y, m, writes ? ML_WRITE : ML_READ);
    }
}

/* Two accesses as a word, if there is a form for them. */
static bool word_of_two(const struct multi_access *a, const struct multi_access *b, uint64_t *word)
{
    if (b->kind & (ML_STORE | ML_LOAD)) {
        unsigned code = rf_atomic_code(b->mask);
        bool beside = a->kind == ML_WRITE && a->mask == 0xff, two = a->kind & (ML_STORE | ML_LOAD) && a->mask == b->mask;
        *word = RF_WORD((two ? RF_ATOMIC_TWO : RF_ATOMIC_ONE) | code, b->moment, a->moment) | RF_ODD_BIT | RF_WRITES_BIT;
        return code && (beside || two);
    }
    *word = RF_WORD(b->mask, b->moment, a->moment) | (b->kind == ML_WRITE ? RF_WRITES_BIT : 0);
    return a->kind == ML_WRITE && (b->kind == ML_READ ? a->mask == 0xff : (a->mask ^ b->mask) == 0xff);
}

static bool word_of_one(const struct multi_access *item, uint64_t *word)
{
    unsigned code = 0;
    if (item->kind & (ML_STORE | ML_LOAD)) {
        code = rf_atomic_code(item->mask);
        *word = RF_WORD(RF_ATOMIC_ONE | code, item->moment, 0) | RF_ODD_BIT | RF_WRITES_BIT;
        return code;
    }
    *word = RF_WORD(item->mask, item->moment, 0) | (item->kind == ML_WRITE ? RF_WRITES_BIT : 0);
    return true;
}

/* A write, a read and a third access, which will be in Y: the first two are a pair. The write may be none, which is to all bytes. */
static bool word_of_three(const struct multi_access *w, const struct multi_access *r, const struct multi_access *y,
                          uint64_t *word)
{
    unsigned rest = ~(unsigned)y->mask & 0xff, pair;
    if (w->kind != ML_WRITE || r->kind != ML_READ || y->kind > ML_READ)
        return false;
    if (y->kind == ML_READ ? w->mask != 0xff || r->mask != (rest ? rest : 0xff)
                           : !rest || w->mask != rest || r->mask != rest)
        return false;
    pair = rf_cell_named(w->moment, r->moment);
    *word = RF_WORD(y->mask, y->moment, pair) | (y->kind == ML_WRITE ? RF_WRITES_BIT : 0);
    return pair;
}

/* Invariant 3. The newest is in Y, where hooks look. */
static bool word_of(const struct multi_list *list, uint64_t *word)
{
    static const struct multi_access none = { .mask = 0xff, .kind = ML_WRITE };
    const struct multi_access *a = &list->items[0], *b = a + 1, *c = a + 2;
    *word = 0;
    switch (list->count) {
    case 0:
        return true;
    case 1:
        return word_of_one(a, word);
    case 2:
        return word_of_two(a, b, word) || word_of_two(b, a, word) || word_of_three(&none, a, b, word);
    case 3:
        return word_of_three(a, b, c, word) || word_of_three(b, a, c, word) || word_of_three(a, c, b, word) ||
               word_of_three(b, c, a, word);
    default:
        return false;
    }
}

static unsigned places_of(uint32_t count)
{
    return count > RF_RECORD_MOST ? RF_MULTI_CHAIN : count;
}

static void list_end_record(struct rf_stripe *stripe, uint64_t word)
{
    unsigned m = RF_WORD_M(word);
    uint32_t number = RF_WORD_X(word);
    if (!rf_word_is_record(word))
        return;
    while (m == RF_MULTI_CHAIN && RF_WORD_X(rf_record_at(number, m)[OF_CHAIN])) {
        uint32_t next = RF_WORD_X(rf_record_at(number, m)[OF_CHAIN]);
        rf_record_end(stripe, number, m);
        number = next;
    }
    rf_record_end(stripe, number, m);
}

/* The records of the old chain are written anew; the last one names another, or there are some to be given back. Who looks without the lock
 * looks at the first one only. */
static uint64_t chain_of(const struct multi_list *list, uint64_t old, struct rf_stripe *stripe)
{
    bool reuse = rf_word_is_record(old) && RF_WORD_M(old) == RF_MULTI_CHAIN;
    uint32_t first = reuse ? RF_WORD_X(old) : rf_record_new(stripe, RF_MULTI_CHAIN), number = first;
    for (uint32_t at = 0;;) {
        uint64_t *record = rf_record_at(number, RF_MULTI_CHAIN);
        for (unsigned i = 0; i < OF_CHAIN; i++, at++)
            __atomic_store_n(&record[i], at < list->count ? place_of(&list->items[at]) : 0, __ATOMIC_RELAXED);
        uint32_t next = RF_WORD_X(record[OF_CHAIN]);
        if (at >= list->count) {
            __atomic_store_n(&record[OF_CHAIN], 0, __ATOMIC_RELAXED);
            if (next)
                list_end_record(stripe, RF_WORD(RF_MULTI_CHAIN, 0, next) | RF_ODD_BIT | RF_WRITES_BIT);
            return RF_WORD(RF_MULTI_CHAIN, 0, first) | RF_ODD_BIT | RF_WRITES_BIT;
        }
        number = next ? next : rf_record_new(stripe, RF_MULTI_CHAIN);
        __atomic_store_n(&record[OF_CHAIN], RF_WORD(0, 0, number), __ATOMIC_RELAXED);
    }
}

/* With the stripe's lock. The record that it had is written anew if it has room: see rf_slices_word(). */
static uint64_t word_for(const struct multi_list *list, uint64_t old, struct rf_stripe *stripe)
{
    uint64_t word;
    unsigned count = places_of(list->count);
    if (word_of(list, &word))
        return word;
    if (count == RF_MULTI_CHAIN)
        return chain_of(list, old, stripe);
    bool reuse = rf_word_is_record(old) && RF_WORD_M(old) < RF_MULTI_CHAIN &&
                 (RF_WORD_M(old) > RF_RECORD_FEW) == (count > RF_RECORD_FEW);
    uint32_t number = reuse ? RF_WORD_X(old) : rf_record_new(stripe, count);
    uint64_t *record = rf_record_at(number, count);
    for (unsigned i = 0; i < count; i++)
        __atomic_store_n(&record[i], place_of(&list->items[i]), __ATOMIC_RELAXED);
    return RF_WORD(count, 0, number) | RF_ODD_BIT | RF_WRITES_BIT;
}

/* `next` took the place of `old`, perhaps with its record: if not, that is given back. */
static void list_end_unless(struct rf_stripe *stripe, uint64_t old, uint64_t next)
{
    bool same_kind = (RF_WORD_M(old) > RF_RECORD_FEW) == (RF_WORD_M(next) > RF_RECORD_FEW);
    if (!rf_word_is_record(next) || !same_kind || RF_WORD_X(old) != RF_WORD_X(next))
        list_end_record(stripe, old);
}

/* ---- steps ---- */

/* A word of which X was not taken out by this access: its other bytes may be X's for all that is known. */
static bool adds_again(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t next)
{
    uint32_t x = RF_WORD_X(next);
    bool writes = next & RF_WRITES_BIT;
    if ((next & RF_ODD_BIT) || RF_WORD_Y(next) != step->now || writes != !!(step->flags & RF_A_WRITE))
        return false;
    if (!writes || !x)
        return true;
    if (rf_cell_is_pair(x) || rf_cell_is_pair(RF_WORD_X(word)))
        return false;
    if (!(word & RF_WRITES_BIT))
        return x == RF_WORD_X(word);
    return (x == RF_WORD_Y(word) && (RF_WORD_M(word) & mask)) || (x == RF_WORD_X(word) && (~RF_WORD_M(word) & mask));
}

/* An access now, with these locks, stands for one of the same kind, or for any if it writes. */
static inline bool list_stands_for(const struct rf_step *step, uint32_t moment, uint32_t locks)
{
    return !moment || ((!locks || rf_moment_locks(moment) == locks) && rf_step_ordered(step, moment));
}

/* The same for an access to all bytes of a word that was read in two moments. */
static bool quick_two(const struct rf_step *step, uint64_t word, uint32_t locks, uint64_t *next)
{
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), w = rf_cell_w(x), r = rf_cell_r(x), now = step->now;
    if (rf_moment_is_now(step->self, w) || rf_moment_is_now(step->self, r) || rf_moment_is_now(step->self, y) ||
        !rf_step_ordered(step, w))
        return false;
    bool after_y = list_stands_for(step, y, locks), after_r = list_stands_for(step, r, locks);
    if (step->flags & RF_A_WRITE) {
        *next = RF_WORD(0xff, now, 0) | RF_WRITES_BIT;
        return after_y && after_r && list_stands_for(step, w, locks);
    }
    x = after_y && after_r ? w : after_y ? x : after_r ? rf_cell_named(w, y) : 0;
    *next = RF_WORD(0xff, now, x);
    return x || (after_y && after_r);
}

bool rf_multi_quick(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next, bool *again)
{
    unsigned m = RF_WORD_M(word);
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word), now = step->now, locks = rf_moment_locks(now);
    bool written = word & RF_WRITES_BIT;
    if ((word & RF_ODD_BIT) || (step->flags & (RF_A_ATOMIC | RF_A_TXN | RF_A_FREE)))
        return false;
    if (rf_cell_is_pair(x)) {
        *again = !(step->flags & RF_A_WRITE);
        return mask == 0xff && rf_word_has_two(word) && quick_two(step, word, locks, next);
    }
    if (rf_moment_is_now(step->self, y) || rf_moment_is_now(step->self, x))
        return false;
    if (step->flags & RF_A_WRITE) {
        unsigned rest = m & ~mask; /* of Y's */
        if (!list_stands_for(step, y, locks) || !list_stands_for(step, x, locks))
            return false;
        if (!written && rest)
            return false;
        if (rest && (m | mask) != 0xff)
            return false;
        x = mask == 0xff ? 0 : rest ? y : x;
        *next = RF_WORD(mask, now, x) | RF_WRITES_BIT;
    } else {
        if (written && m != 0xff)
            return false;
        if (!written && (m & ~mask))
            return false;
        x = written ? y : x;
        if (!rf_step_ordered(step, x))
            return false;
        if (!written && !list_stands_for(step, y, locks) && (m != 0xff || mask != 0xff || !(x = rf_cell_named(x, y))))
            return false;
        *next = RF_WORD(mask, now, x);
    }
    *again = adds_again(step, word, mask, *next);
    return true;
}

/* It was not this place of the program that the moment is named after. */
static void keep_joined(const struct rf_step *step, const uint64_t *place, unsigned mask, const struct multi_list *list)
{
    if (list->joined && list->joined != step->now)
        rf_nearby_put(step->self, place, mask, list->joined, rf_moment_note_beside(step->now, list->joined));
}

static __attribute__((noinline)) void list_step_locked(uint64_t *place, unsigned mask, struct rf_step *step)
{
    struct multi_list list;
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    for (;;) {
        list_of(word, &list);
        list_step(step, &list, mask);
        uint64_t next = list.changed ? word_for(&list, word, stripe) : word, old = word;
        list_end(&list);
        if (__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            if (next != old)
                list_end_unless(stripe, old, next);
            break;
        }
        list_end_record(stripe, next); /* only a word without units can have changed under us */
    }
    rf_spin_unlock(&stripe->lock);
    keep_joined(step, place, mask, &list);
}

void rf_multi_step(uint64_t *place, uint64_t word, unsigned mask, struct rf_step *step)
{
    uint64_t next;
    bool again;
    step->made = 0;
    while (!rf_word_has_units(word)) {
        struct multi_list list;
        list.joined = 0;
        step->race = 0;
        if (!rf_multi_quick(step, word, mask, &next, &again)) {
            list_of(word, &list);
            list_step(step, &list, mask);
            if (!list.changed)
                return;
            if (!word_of(&list, &next))
                break;
            again = adds_again(step, word, mask, next);
        }
        uint64_t old = word;
        if (__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            keep_joined(step, place, mask, &list);
            step->old = old;
            step->made = again ? next : 0;
            return;
        }
    }
    list_step_locked(place, mask, step);
}

void rf_multi_clear(uint64_t *place, unsigned mask)
{
    struct multi_list list;
    struct rf_stripe *stripe = rf_stripe_of(place);
    rf_spin_lock(&stripe->lock);
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    do {
        list_of(word, &list);
        list_forget(&list, mask);
        next = word_for(&list, word, stripe);
        list_end(&list);
        uint64_t old = word;
        if (__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            if (next != old)
                list_end_unless(stripe, old, next);
            break;
        }
        list_end_record(stripe, next);
    } while (true);
    rf_spin_unlock(&stripe->lock);
}

/* ---- what comes from elsewhere ---- */

static void append_moved(struct multi_list *list, uintptr_t from, int shift, unsigned mask)
{
    struct multi_list source;
    list_of(__atomic_load_n(rf_word(from), __ATOMIC_ACQUIRE), &source);
    for (uint32_t i = 0; i < source.count; i++) {
        unsigned bytes = source.items[i].mask;
        list_append(list, source.items[i].moment, (shift >= 0 ? bytes << shift : bytes >> -shift) & mask,
                    source.items[i].kind);
    }
    list_end(&source);
}

/* Accesses that are in the list twice, for different bytes, become one. */
static void join_equal(struct multi_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        for (uint32_t j = i + 1; j < list->count;) {
            if (list->items[i].moment == list->items[j].moment && list->items[i].kind == list->items[j].kind) {
                list->items[i].mask |= list->items[j].mask;
                list->items[j] = list->items[--list->count];
            } else {
                j++;
            }
        }
}

void rf_multi_copy(uint64_t *place, uintptr_t first, unsigned offset, unsigned mask)
{
    struct multi_list list;
    struct rf_stripe *stripe = rf_stripe_of(place);
    uint64_t word = *place;
    rf_spin_lock(&stripe->lock);
    list_of(word, &list);
    list_forget(&list, mask);
    append_moved(&list, first, -(int)offset, mask);
    if (offset)
        append_moved(&list, first + RF_GRANULE, (int)(RF_GRANULE - offset), mask);
    join_equal(&list);
    uint64_t next = word_for(&list, 0, stripe);
    list_end(&list);
    list_end_record(stripe, word);
    __atomic_store_n(place, next, __ATOMIC_RELEASE);
    rf_spin_unlock(&stripe->lock);
    rf_touch(place);
}

void rf_multi_visit(uint64_t word, uint64_t (*visit_place)(uint64_t place, uint32_t (*visit)(uint32_t moment)),
                    uint32_t (*visit)(uint32_t moment))
{
    unsigned m = RF_WORD_M(word), most = m == RF_MULTI_CHAIN ? OF_CHAIN : m;
    for (uint32_t number = RF_WORD_X(word); number;) {
        uint64_t *record = rf_record_at(number, m);
        for (unsigned i = 0; i < most; i++)
            record[i] = visit_place(record[i], visit);
        number = m == RF_MULTI_CHAIN ? RF_WORD_X(record[OF_CHAIN]) : 0;
    }
}
