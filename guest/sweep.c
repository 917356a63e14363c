/* A sweep looks at every history, with the world stopped: blocks of moments that none names are free again, what is left of sparse
 * blocks moves into fresh ones, and slots of threads that ended unjoined can be used again if none names them.
 *
 * 1. Histories are words, records and sets; they are found from the patches of words that were ever touched.
 * 2. A thread's own block is left alone, and so are the moments of its present epoch: they all lie in blocks it still uses or in ones
 *    that its epoch's histories name, and a block is only emptied if all its moments are older than its slot's present epoch.
 * 3. Moving changes names, not facts: the new moment has the same slot, time and note.
 */
#include "guest/sweep.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest/granule.h"
#include "guest/memory.h"
#include "guest/moments.h"
#include "guest/multi.h"
#include "guest/nearby.h"
#include "guest/options.h"
#include "guest/policy.h"
#include "guest/threads.h"

/* With fewer of its moments in use a block is emptied: one in eight; one in two when blocks are scarce. */
#define SPARSE (RF_MOMENT_BLOCK / 8)
#define SPARSE_IN_NEED (RF_MOMENT_BLOCK / 2)

enum { FREE, OWN, NAMED, EMPTIED };

#define AHEAD 12 /* words: so far ahead of the one that is visited another one's units are asked for */

#define ROWS (RF_MOMENT_BLOCK < 64 ? 1 : RF_MOMENT_BLOCK / 64)

/* Where the moments of an emptied block went: in their order, side by side, but for one gap at most. */
struct moved {
    uint32_t first, rest; /* what to add to how many came before it: fewer than `split`, or not */
    uint32_t split;
    uint16_t before[ROWS]; /* how many of the block came before those of this word of sweep.seen */
};

static struct {
    uint8_t state[RF_MOMENT_BLOCKS];
    uint16_t named[RF_MOMENT_BLOCKS];      /* how many of its moments are in use */
    struct moved *moved[RF_MOMENT_BLOCKS]; /* EMPTIED, or NULL: none of its moments is in use */
    uint64_t *seen;                        /* a bit for each moment */
    uint32_t next, end, slot;              /* of the fresh block that is being filled */
} sweep;

#define SEEN_BYTES ((size_t)(1u << RF_MOMENT_BITS) / 8)

#define INLINED inline __attribute__((always_inline)) /* millions of words are visited */

/* Moment 0 is "never"; that it is marked changes nothing: its block is nobody's. */
static INLINED uint32_t mark(uint32_t moment)
{
    uint64_t bit = UINT64_C(1) << moment % 64, *seen = &sweep.seen[moment / 64];
    if (!(*seen & bit))
        *seen |= bit;
    return moment;
}

/* Those of its block in this word of sweep.seen, which may be those of several blocks. */
static INLINED uint64_t seen_of(uint32_t moment)
{
    uint64_t all = RF_MOMENT_BLOCK < 64
                       ? ((UINT64_C(1) << RF_MOMENT_BLOCK % 64) - 1) << moment % 64 / RF_MOMENT_BLOCK * RF_MOMENT_BLOCK
                       : UINT64_MAX;
    return sweep.seen[moment / 64] & all;
}

static INLINED uint32_t move(uint32_t moment)
{
    const struct moved *moved = sweep.moved[moment >> RF_MOMENT_BLOCK_BITS];
    if (!moved)
        return moment;
    uint64_t earlier = seen_of(moment) & ((UINT64_C(1) << moment % 64) - 1);
    uint32_t rank = moved->before[moment % RF_MOMENT_BLOCK / 64] + (uint32_t)__builtin_popcountll(earlier);
    return (rank < moved->split ? moved->first : moved->rest) + rank;
}

typedef uint32_t visit_fn(uint32_t moment);

/* A pair, or lanes, and what they name. Several words may name a pair: to visit what was visited already changes nothing. */
static INLINED uint32_t visit_cell(uint32_t name, visit_fn *visit)
{
    if (name >= RF_LANES_FIRST) {
        uint64_t *lane = rf_lane_at(name);
        for (unsigned i = 0; i < RF_GRANULE; i++) {
            uint64_t cell = lane[i], next = (uint64_t)visit((uint32_t)(cell >> 32)) << 32 | visit((uint32_t)cell);
            if (next != cell) /* a line that is only looked at need not be written back */
                lane[i] = next;
        }
        return name;
    }
    name = visit(name);
    if (rf_cell_is_pair(name)) {
        struct rf_pair *pair = rf_pair_at(name), next = { visit(pair->w), visit(pair->r) };
        if (next.w != pair->w || next.r != pair->r)
            *pair = next;
    }
    return name;
}

/* Lanes and records are far from the words that name them, and a sweep waits for each if it does not ask for it some words before. */
static INLINED void fetch_units(uint64_t word)
{
    if (rf_word_has_lanes(word))
        __builtin_prefetch(rf_lane_at(RF_WORD_X(word)));
    else if (rf_word_has_map(word))
        __builtin_prefetch(rf_readers_at(RF_WORD_Y(word)));
    else if (rf_word_is_record(word))
        __builtin_prefetch(rf_record_at(RF_WORD_X(word), RF_WORD_M(word)));
    else if (rf_cell_is_pair(RF_WORD_X(word)))
        __builtin_prefetch(rf_pair_at(RF_WORD_X(word)));
}

static INLINED uint64_t visit_slice(uint64_t slice, visit_fn *visit)
{
    uint32_t y = RF_WORD_Y(slice), x = RF_WORD_X(slice);
    if (slice & RF_ODD_BIT) {
        struct rf_readers *readers = rf_readers_at(y);
        uint32_t *list = rf_readers_list(readers);
        for (uint32_t i = 0; i < readers->count; i++)
            list[i] = visit(list[i]);
    } else {
        y = visit(y);
    }
    uint64_t kept = slice & ~(RF_MOMENT_MASK | RF_MOMENT_MASK << 28);
    return kept | (uint64_t)y << 28 | visit_cell(x, visit);
}

static INLINED void visit_word(uint64_t *place, visit_fn *visit)
{
    uint64_t word = *place, next;
    if (__builtin_expect(!(word & RF_ODD_BIT), 1)) {
        next = visit_slice(word, visit);
        goto put;
    }
    if (rf_word_is_mixed(word) || rf_word_is_atomic(word)) {
        uint32_t y = visit(RF_WORD_Y(word));
        *place = (word & ~(RF_MOMENT_MASK | RF_MOMENT_MASK << 28)) | (uint64_t)y << 28 | visit_cell(RF_WORD_X(word), visit);
        return;
    }
    if (__builtin_expect(rf_multi, 0) && rf_word_is_record(word)) {
        rf_multi_visit(word, visit_slice, visit);
        return;
    }
    if (rf_word_is_record(word)) {
        uint64_t *record = rf_record_at(RF_WORD_X(word), RF_WORD_M(word));
        for (unsigned i = 0; i < RF_WORD_M(word); i++)
            record[i] = visit_slice(record[i], visit);
        return;
    }
    rf_policy_settle(word);
    next = visit_slice(word, visit);
    rf_readers_unsettle(RF_WORD_Y(word));
put:
    /* A page that is only looked at stays as it is. Who is not busy may be adding bytes to a word of its own epoch (rf_slow_access): they
     * must not get lost. */
    while (next != word && !__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        next = visit_slice(word, visit);
}

/* Every word that is not 0. */
static INLINED void visit_all(visit_fn *visit)
{
    for (size_t district = 0; district < RF_DISTRICTS; district++) {
        if (!rf_districts[district])
            continue;
        const uint8_t *touched = (const uint8_t *)RF_TOUCHED + (district << 12);
        for (size_t patch = 0; patch < 4096; patch++) {
            if (!touched[patch])
                continue;
            uint64_t *word = (uint64_t *)(RF_PATCHES + (((district << 12) + patch) << RF_PATCH_BITS));
            for (uint64_t *end = word + RF_PATCH / sizeof *word; word < end; word++) {
                if (end - word > AHEAD && word[AHEAD])
                    fetch_units(word[AHEAD]);
                if (*word)
                    visit_word(word, visit);
            }
        }
    }
}

static __attribute__((noinline)) void mark_all(void)
{
    visit_all(mark);
    for (uint32_t block = 1; block < RF_MOMENT_BLOCKS; block++)
        for (uint32_t row = 0; rf_moments_in_use(block) && row < ROWS; row++)
            sweep.named[block] += (uint16_t)__builtin_popcountll(seen_of((block << RF_MOMENT_BLOCK_BITS) + 64 * row));
}

static __attribute__((noinline)) void move_all(void)
{
    visit_all(move);
}

static void prepare_thread(struct rf_self *self, void *context)
{
    (void)context;
    if (self->block_end)
        sweep.state[(self->block_end - 1) >> RF_MOMENT_BLOCK_BITS] = OWN;
    /* Moments of emptied blocks will be used again for something else. */
    for (uint32_t i = 0; self->moments && i <= self->moments_mask; i++)
        if (self->moments[i].moment) /* a page that is only looked at needs no memory */
            self->moments[i].moment = 0;
    self->noted_moment = 0;
    rf_last_steps_end(self);
    rf_nearby_clear(self);
    self->wants_sweep = false;
}

/* Blocks whose slot is in an epoch that began inside them, or before, are neither emptied nor given to others (invariant 2): the hooks
 * take every moment between the epoch's first and its last for the thread's own. */
static void keep_epoch(struct rf_self *self, void *context)
{
    (void)context;
    for (uint32_t block = 1; block < RF_MOMENT_BLOCKS; block++) {
        const struct rf_moment_block *b = &rf_moment_blocks[block];
        if (sweep.state[block] != FREE && b->slot == self->thread.slot && b->first != RF_NOT_LINEAR &&
            b->first + RF_MOMENT_BLOCK > self->epoch_time)
            sweep.state[block] = OWN;
    }
}

/* A fresh moment, or pair, that stands for the same. 0: there are no more blocks. */
static uint32_t another(uint32_t moment)
{
    uint32_t slot = rf_moment_slot(moment);
    if (sweep.next == sweep.end || sweep.slot != slot) {
        uint32_t block = rf_moments_take(slot == RF_PAIRS);
        if (!block)
            return 0;
        rf_moment_blocks[block] = (struct rf_moment_block){ slot, slot == RF_PAIRS ? RF_PAIRS : RF_NOT_LINEAR };
        sweep.state[block] = OWN;
        sweep.next = block << RF_MOMENT_BLOCK_BITS;
        sweep.end = sweep.next + RF_MOMENT_BLOCK;
        sweep.slot = slot;
    }
    uint32_t fresh = sweep.next++;
    if (slot != RF_PAIRS)
        ((uint32_t *)RF_TIMES)[fresh] = rf_moment_time(moment);
    ((struct rf_noted *)RF_NOTES)[fresh] = ((const struct rf_noted *)RF_NOTES)[moment];
    return fresh;
}

static bool empty(uint32_t block)
{
    struct moved *moved = rf_take(sizeof *moved);
    uint32_t from = block << RF_MOMENT_BLOCK_BITS, rank = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        moved->before[row] = (uint16_t)rank;
        for (uint64_t seen = seen_of(from + 64 * row); seen; seen &= seen - 1, rank++) {
            uint32_t fresh = another((from + 64 * row) / 64 * 64 + (uint32_t)__builtin_ctzll(seen));
            if (!fresh) { /* what was moved so far has two names; that does no harm */
                rf_give(moved, sizeof *moved);
                return false;
            }
            if (!rank)
                moved->first = fresh;
            if (fresh - rank == moved->first)
                moved->split = rank + 1;
            else
                moved->rest = fresh - rank; /* the rest of them is in one block (another()) */
        }
    }
    sweep.moved[block] = moved;
    sweep.state[block] = EMPTIED;
    return true;
}

static void give_back(uint32_t block)
{
    rf_moments_free(block);
    size_t bytes = RF_MOMENT_BLOCK * sizeof(uint32_t);
    if (bytes >= 4096 && rf_moment_blocks[block].first == RF_NOT_LINEAR)
        RF_SYSCALL(SYS_madvise, RF_TIMES + block * bytes, bytes, MADV_DONTNEED);
}

/* Blocks by slot, so that what is moved of one slot comes together. */
static void empty_sparse(void)
{
    uint32_t wanted = 0, kept = 0;
    for (uint32_t block = 1; block < RF_MOMENT_BLOCKS; block++)
        kept += sweep.state[block] == NAMED || sweep.state[block] == OWN;
    uint32_t sparse = kept > RF_MOMENT_BLOCKS / 2 ? SPARSE_IN_NEED : SPARSE;
    for (uint32_t block = 1; block < RF_MOMENT_BLOCKS; block++)
        wanted += sweep.state[block] == NAMED && sweep.named[block] < sparse;
    if (wanted < 4)
        return;
    bool room = true;
    for (uint32_t block = 1; block < RF_MOMENT_BLOCKS && room; block++) {
        if (sweep.state[block] != NAMED || sweep.named[block] >= sparse)
            continue;
        uint32_t slot = rf_moment_blocks[block].slot;
        for (uint32_t other = block; other < RF_MOMENT_BLOCKS && room; other++)
            if (sweep.state[other] == NAMED && sweep.named[other] < sparse && rf_moment_blocks[other].slot == slot)
                room = empty(other);
    }
    move_all();
}

/* guest/threads.c: slots of threads that ended and were not joined, which may be used again once no history names them. */
void rf_slots_dead(void (*f)(uint32_t slot, void *context), void *context) __attribute__((weak));
void rf_slot_reclaim(uint32_t slot) __attribute__((weak));

static void reclaim(uint32_t slot, void *context)
{
    (void)context;
    for (uint32_t block = 1; block < RF_MOMENT_BLOCKS; block++)
        if (rf_moments_in_use(block) && rf_moment_blocks[block].slot == slot)
            return;
    rf_slot_reclaim(slot);
}

void rf_sweep(struct rf_self *self)
{
    self->inside++;
    rf_world_stop(self);
    if (self->wants_sweep) { /* nobody else was faster */
        if (!sweep.seen && !(sweep.seen = rf_reserve(SEEN_BYTES)))
            rf_die("out of memory: the kernel refuses %zu bytes for a sweep", SEEN_BYTES);
        memset(sweep.named, 0, sizeof sweep.named);
        memset(sweep.state, FREE, sizeof sweep.state);
        rf_threads_each(prepare_thread, NULL);
        rf_nearby_clear_ended();
        rf_cells_forget();
        mark_all();
        uint32_t kept = 0;
        for (uint32_t block = 1; block < RF_MOMENT_BLOCKS; block++)
            if (sweep.state[block] != OWN && rf_moments_in_use(block))
                sweep.state[block] = sweep.named[block] ? NAMED : EMPTIED;
        rf_threads_each(keep_epoch, NULL);
        empty_sparse();
        for (uint32_t block = 1; block < RF_MOMENT_BLOCKS; block++) {
            if (sweep.state[block] == EMPTIED) {
                give_back(block);
                rf_give(sweep.moved[block], sizeof *sweep.moved[block]);
                sweep.moved[block] = NULL;
            }
            kept += rf_moments_in_use(block);
        }
        RF_SYSCALL(SYS_madvise, sweep.seen, SEEN_BYTES, MADV_DONTNEED);
        sweep.next = sweep.end = 0;
        rf_moments_limit(kept);
        if (rf_slots_dead && rf_slot_reclaim)
            rf_slots_dead(reclaim, NULL);
        if (rf_options.verbosity > 1)
            rf_say("swept: %u blocks of moments are in use", kept);
    }
    rf_world_go(self);
    self->inside--;
    if (self->pending_signals) /* one came meanwhile */
        rf_signals_deliver();
}
