#include "guest/moments.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "core/lockset.h"
#include "guest/depot.h"
#include "guest/escape.h"
#include "guest/memory.h"
#include "guest/pacer.h"
#include "guest/policy.h"
#include "guest/seen.h"
#include "guest/spin.h"
#include "guest/start.h"
#include "guest/threads.h"

#define LOST_AT_ONCE RF_MOMENT_BLOCKS /* accesses that go unrecorded until the next sweep */
#define SWEEP_AT (RF_MOMENT_BLOCKS < 4096 ? RF_MOMENT_BLOCKS / 2 : 512) /* blocks in use, at first */

struct rf_moment_block rf_moment_blocks[RF_MOMENT_BLOCKS];

/* Of a block. One that was in use has memory: until the next sweep it is better used again than given back. */
enum { UNUSED, USED, WARM };

#define PAIRS_FIRST ((uint32_t)RF_PAIRS_FIRST >> RF_MOMENT_BLOCK_BITS)
#define PAIRS_END ((uint32_t)RF_PAIRS_END >> RF_MOMENT_BLOCK_BITS)

/* Where blocks of one kind are taken from. */
struct zone {
    uint32_t first, end;
    uint32_t used, warm;
    uint32_t next;      /* where to look for a free one */
    uint32_t next_warm; /* and for a warm one */
};

/* Under its lock, or with the world stopped. */
static struct {
    uint32_t lock;
    uint32_t limit;         /* of those in use: above it a sweep is due, */
    uint32_t moments_limit; /* ... and of those of moments, which may run out first */
    struct zone moments, pairs;
    uint8_t state[RF_MOMENT_BLOCKS];
} blocks = {
    .limit = SWEEP_AT,
    .moments_limit = PAIRS_FIRST,
    .moments = { .end = PAIRS_FIRST },
    .pairs = { .first = PAIRS_FIRST, .end = PAIRS_END, .next = PAIRS_FIRST, .next_warm = PAIRS_FIRST },
};

static struct zone *zone_of(uint32_t block)
{
    return block < PAIRS_FIRST ? &blocks.moments : &blocks.pairs;
}

static uint32_t used(void)
{
    return blocks.moments.used + blocks.pairs.used;
}

static uint32_t warm(void)
{
    return blocks.moments.warm + blocks.pairs.warm;
}

void rf_moments_begin(void)
{
    blocks.state[0] = USED; /* moment 0 is "never" */
    blocks.moments.used = 1;
}

bool rf_moments_in_use(uint32_t block)
{
    return blocks.state[block] == USED;
}

void rf_moments_free(uint32_t block)
{
    blocks.state[block] = WARM;
    zone_of(block)->used--;
    zone_of(block)->warm++;
}

/* More than will be used before the next sweep, or than the first sweep waits for, are given back, the last ones first: they are taken from
 * the first one on. */
static void cool(void)
{
    const size_t bytes = RF_MOMENT_BLOCK * sizeof(struct rf_noted);
    for (uint32_t block = RF_MOMENT_BLOCKS - 1; block && (warm() > SWEEP_AT || used() + warm() > blocks.limit);
         block--) {
        if (blocks.state[block] != WARM)
            continue;
        blocks.state[block] = UNUSED;
        zone_of(block)->warm--;
        if (bytes >= 4096)
            RF_SYSCALL(SYS_madvise, RF_NOTES + block * bytes, bytes, MADV_DONTNEED);
    }
    blocks.moments.next_warm = blocks.moments.first;
    blocks.pairs.next_warm = blocks.pairs.first;
}

/* Twice as many, or half of what is free: the last ones come soon enough for another sweep. */
void rf_moments_limit(uint32_t kept)
{
    uint32_t limit = 2 * kept, half_way = (kept + PAIRS_END) / 2;
    if (limit > half_way)
        limit = half_way;
    blocks.limit = limit < SWEEP_AT ? SWEEP_AT : limit;
    blocks.moments_limit = (blocks.moments.used + PAIRS_FIRST) / 2;
    cool();
}

/* From there on, round and round: there is one. */
static uint32_t look_for(const struct zone *zone, uint32_t block, uint8_t state)
{
    while (blocks.state[block] != state)
        block = block + 1 < zone->end ? block + 1 : zone->first;
    return block;
}

static uint32_t warm_block(struct zone *zone)
{
    return zone->next_warm = look_for(zone, zone->next_warm, WARM);
}

/* A few are left free between those of different threads. */
static uint32_t unused_block(struct zone *zone)
{
    uint32_t size = zone->end - zone->first, gap = zone->used < size / 4 ? size / 512 : 0;
    uint32_t from = zone->next + gap < zone->end ? zone->next + gap : zone->first;
    return zone->next = look_for(zone, from, UNUSED);
}

/* `wanted` if it is free, else the next free one: a thread whose blocks lie side by side keeps its epoch's first moment. */
static uint32_t take_block(struct zone *zone, uint32_t wanted)
{
    uint32_t block = 0;
    rf_spin_lock(&blocks.lock);
    if (wanted < zone->end && blocks.state[wanted] == (zone->warm ? WARM : UNUSED))
        block = wanted;
    else if (zone->warm)
        block = warm_block(zone);
    else if (zone->used < zone->end - zone->first)
        block = unused_block(zone);
    if (block) {
        zone->warm -= blocks.state[block] == WARM;
        zone->used++;
        blocks.state[block] = USED;
    }
    rf_spin_unlock(&blocks.lock);
    return block;
}

uint32_t rf_moments_take(bool pairs)
{
    return take_block(pairs ? &blocks.pairs : &blocks.moments, RF_MOMENT_BLOCKS);
}

/* For rf_hot.base2: no word is near it, so every write of eight bytes or more goes the long way (guest/escape.h, 3). */
#define NO_WRITE (UINT64_C(1) << 62 | 1)

static void set_epoch(struct rf_self *self, uint32_t first)
{
    rf_hot.span = 0; /* first: a signal handler's accesses must not meet the old one with the new base */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    rf_hot.base = UINT64_C(0xff) << 28 | first;
    rf_hot.base2 = rf_escape_leaves ? NO_WRITE : rf_hot.base << 1 | 1;
    rf_hot.first = first;
    rf_seen_forget();
    self->epoch_time = self->thread.clock.times[self->thread.slot] + 1;
}

void rf_epoch_begin(struct rf_self *self)
{
    if (__builtin_expect(rf_escape_leaves != NULL, 0) && rf_hot.self == self)
        rf_escape_flush(self);
    if (__builtin_expect(rf_pacer, 0))
        rf_pacer_work(self);
    bool running = rf_hot.self == self;
    /* No moment since the last epoch began: this is still it. */
    if (running && !rf_hot.span && rf_hot.first == self->next_moment &&
        self->epoch_time == self->thread.clock.times[self->thread.slot] + 1)
        return;
    if (running) {
        set_epoch(self, self->next_moment);
    } else {
        rf_last_steps_end(self);
        self->epoch_time = self->thread.clock.times[self->thread.slot] + 1;
    }
}

uint64_t rf_moments_lost;

/* false: all moments are in use, and a sweep did not help. The access goes unrecorded, and is counted. */
static __attribute__((noinline)) bool next_block(struct rf_self *self)
{
    uint32_t wanted = self->block_end ? self->block_end >> RF_MOMENT_BLOCK_BITS : RF_MOMENT_BLOCKS;
    uint32_t *time = &self->thread.clock.times[self->thread.slot];
    if (*time >= self->order.time_limit || *time > UINT32_MAX - 2 * RF_MOMENT_BLOCK) {
        rf_thread_fresh_slot(self);
        time = &self->thread.clock.times[self->thread.slot];
    }
    uint32_t block = take_block(&blocks.moments, wanted), first = block << RF_MOMENT_BLOCK_BITS;
    if (!block) { /* from time to time it is worth another look */
        self->wants_sweep |= __atomic_add_fetch(&rf_moments_lost, 1, __ATOMIC_RELAXED) % LOST_AT_ONCE == 0;
        if (self->block_slot != self->thread.slot) /* sweeps do not keep the moments of a slot that the thread has left */
            set_epoch(self, self->next_moment);
        return false;
    }
    self->wants_sweep |= used() > blocks.limit || blocks.moments.used > blocks.moments_limit;
    rf_moment_blocks[block] = (struct rf_moment_block){ self->thread.slot, *time + 1 };
    if (block != wanted || self->block_slot != self->thread.slot) {
        /* The epoch's earlier moments are no longer in one piece with the next: the hooks take them for old, which costs a way
         * through here and is never wrong. */
        uint32_t epoch_time = self->epoch_time;
        bool same_slot = self->block_slot == self->thread.slot;
        set_epoch(self, first);
        if (same_slot)
            self->epoch_time = epoch_time;
    }
    self->next_moment = first;
    self->block_end = first + RF_MOMENT_BLOCK;
    self->block_slot = self->thread.slot;
    return true;
}

static uint32_t new_moment(struct rf_self *self, uint32_t note, uint32_t locks)
{
    if (rf_moment_is_last(self) && !next_block(self))
        return 0;
    return rf_moment_take(self, note, locks);
}

/* Four times as many. */
static void grow_cache(struct rf_self *self)
{
    struct rf_cached_moment *old = self->moments;
    uint32_t count = self->moments_mask + 1;
    self->moments = rf_take(4 * count * sizeof *old);
    self->moments_mask = 4 * count - 1;
    for (uint32_t i = 0; i < count; i++)
        if (old[i].what)
            *rf_moment_cached(self, old[i].what, old[i].below) = old[i];
    if (count > RF_MOMENT_CACHE)
        rf_give(old, count * sizeof *old);
    self->moments_missed = 0;
}

void rf_moments_thread_end(struct rf_self *self)
{
    if (self->moments && self->moments_mask >= RF_MOMENT_CACHE)
        rf_give(self->moments, (self->moments_mask + 1) * sizeof *self->moments);
    self->moments = NULL;
}

static __attribute__((noinline)) struct rf_cached_moment *note_place(struct rf_self *self, uint64_t what, uint64_t below)
{
    if (++self->moments_missed > 4 * self->moments_mask && self->moments_mask + 1 < RF_MOMENT_CACHE_MOST)
        grow_cache(self);
    uint32_t note = rf_depot_put(what, below);
    struct rf_cached_moment *cached = rf_moment_cached(self, what, below);
    *cached = (struct rf_cached_moment){ what, below, note, 0 };
    return cached;
}

/* The thread is busy: no signal handler comes between the look and what is read. */
static inline struct rf_cached_moment *cached_here(struct rf_self *self, uintptr_t pc, unsigned flags, size_t size, uint32_t locks)
{
    uint64_t key = rf_access_key(pc, flags, size), below = (uint64_t)locks << 32 | rf_depot_node(self);
    struct rf_cached_moment *cached = rf_moment_cached(self, key, below);
    return __builtin_expect(cached->what == key && cached->below == below, 1) ? cached : note_place(self, key, below);
}

uint32_t rf_moment_now(struct rf_self *self, uintptr_t pc, unsigned flags, size_t size)
{
    struct rf_cached_moment *cached = cached_here(self, pc, flags, size, RF_NO_LOCKS);
    if (!rf_moment_is_now(self, cached->moment) || rf_moment_locks(cached->moment) != self->locks)
        cached->moment = new_moment(self, cached->note, self->locks);
    return cached->moment;
}

uint32_t rf_moment_for(struct rf_self *self, uint32_t note, uint32_t locks)
{
    uint32_t moment = self->noted_moment;
    if (!rf_moment_is_now(self, moment) || rf_moment_note(moment) != note || rf_moment_locks(moment) != locks)
        self->noted_moment = new_moment(self, note, locks);
    return self->noted_moment;
}

uint32_t rf_moment_note_beside(uint32_t moment, uint32_t kept)
{
    uint32_t note = rf_moment_note(moment), locks = rf_moment_locks(moment);
    return locks == rf_moment_locks(kept) ? note : rf_note_with_locks(note, locks);
}

uint32_t rf_moment_place(struct rf_self *self, uintptr_t pc, unsigned flags, size_t size)
{
    return cached_here(self, pc, flags, size, RF_NO_LOCKS)->note;
}

uint32_t rf_moment_note_here(struct rf_self *self, uintptr_t pc, unsigned flags, size_t size)
{
    bool mine = rf_busy_enter(self);
    uint32_t note = cached_here(self, pc, flags, size, self->locks)->note;
    rf_busy_leave(self, mine);
    return note;
}
