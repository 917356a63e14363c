/* The history of granules as the runtime keeps it, against every access kept and happens-before by vector clocks of its own: random
 * threads, bytes, orders, atomic and plain accesses. A race is reported exactly when there is one, and what it is reported with is
 * an access that it races with, by its thread and its place in the program. Moments are few, so sweeps come all the time. */
#define RF_ADDRESS_MASK 0xfffff8
#define RF_PATCHES 0x200000000000
#define RF_WORDS (RF_PATCHES + 0xf7c0)
#define RF_WORDS_SIZE 0x10000000000
#ifndef RF_MOMENT_BITS /* tests/unit/test_guest_blocks.c */
#define RF_MOMENT_BITS 10
#define RF_MOMENT_BLOCK_BITS 3
#endif

#include <stdint.h>

static uint32_t lanes_most = UINT32_C(1) << 20;
#define RF_LANES_MOST lanes_most
static uint32_t long_epoch;
#define RF_LONG_EPOCH long_epoch

#include "guest/access.c"
#include "guest/accu.c"
#include "guest/accu_units.c"
#include "guest/cells.c"
#include "guest/depot.c"
#include "guest/fib.c"
#include "guest/granule.c"
#include "guest/lanes.c"
#include "guest/memory.c"
#include "guest/moments.c"
#include "guest/multi.c"
#include "guest/nearby.c"
#include "guest/pacer.c"
#include "guest/planes.c"
#include "guest/policy.c"
#include "guest/ranges.c"
#include "guest/records.c"
#include "guest/repeats.c"
#include "guest/slow_access.c"
#include "guest/sweep.c"
#include "guest/system.c"
#include "guest/units.c"

#include "detect/acculock.h"
#include "detect/multilock.h"
#include "guest/first_atomic.h"
#include "guest/transactions.h"
#include "tests/harness.h"

#define THREADS 5u
#define LOCKS 4u
#define GRANULES 3u
#define PLACES 6u /* different program counters */
#define KEPT 4096u

uint64_t rf_seen_nothing[2 * RF_SEEN];
const struct rf_fresh rf_fresh_nothing;
RF_TLS struct rf_hot rf_hot = RF_HOT_NONE;
struct rf_plane rf_plane_now = { RF_ADDRESS_MASK, (uint64_t *)RF_WORDS };
int rf_started = 1;
struct rf_run_options rf_options = { .detector = "fasttrack", .on_race = "report" };

/* A thread of the test; one kernel thread plays them all. */
struct player {
    struct rf_self self;
    struct rf_hot hot;
    struct rf_frame frames[8];
    struct rf_cached_moment moments[RF_MOMENT_CACHE];
    uint64_t seen[2 * RF_SEEN];
    uint32_t clock[THREADS]; /* the model's: events of each thread that it knows */
};

struct kept {
    uint32_t thread, time; /* the model's epoch */
    uint8_t first, end;    /* bytes */
    uint8_t granule;
    unsigned flags;
    uintptr_t pc;
    bool sampled;
};

static struct {
    struct player players[THREADS];
    struct rf_clock locks[LOCKS];
    uint32_t lock_clocks[LOCKS][THREADS];
    struct kept kept[KEPT];
    unsigned count;
    bool reported;
    uint32_t note, thread; /* of the earlier access */
    bool exact;            /* the note was kept for these bytes */
    bool predicted;
} game;

void rf_threads_each(void (*f)(struct rf_self *, void *), void *context)
{
    for (unsigned i = 0; i < THREADS; i++)
        f(&game.players[i].self, context);
}

bool rf_race_found(struct rf_self *self, const struct rf_found *race)
{
    (void)self;
    unsigned mask = ((1u << race->size) - 1) << race->addr % RF_GRANULE;
    game.reported = true;
    game.predicted = race->predicted;
    game.thread = race->slot;
    game.note = rf_nearby_note(game.thread, rf_word(race->addr), mask, race->moment, race->writes);
    game.exact = game.note != 0;
    if (!game.note)
        game.note = rf_note_of_kind(race->earlier, race->writes);
    return true;
}

bool rf_refuses, rf_txn_used;
bool rf_benign_any = true; /* each race is told, though it was before */

bool rf_would_race(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc, struct rf_found *race)
{
    (void)self, (void)addr, (void)size, (void)flags, (void)pc, (void)race;
    return false;
}

struct rf_found rf_found_by(const struct rf_step *step, uintptr_t addr, size_t size, uint32_t note)
{
    return (struct rf_found){ .addr = addr,
                              .size = size,
                              .flags = step->flags,
                              .note = note,
                              .moment = step->race,
                              .earlier = rf_moment_note(step->race),
                              .slot = rf_moment_slot(step->race),
                              .time = rf_moment_time(step->race),
                              .mask = step->race_mask,
                              .writes = step->race_writes,
                              .predicted = rf_moment_time(step->race) <=
                                           rf_clock_get(&step->self->thread.clock, rf_moment_slot(step->race) + 1) };
}

const struct rf_tap *rf_tap;

double rf_share_of(const char *text)
{
    (void)text;
    return 0;
}

bool rf_tap_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    (void)self, (void)addr, (void)size, (void)flags, (void)pc;
    return false;
}

bool rf_tap_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc)
{
    (void)self, (void)op, (void)addr, (void)size, (void)pc;
    return false;
}

struct rf_self *rf_self_attach(void)
{
    return NULL;
}

uint32_t rf_world_stopping;
bool rf_world_fences;

void rf_world_wait(struct rf_self *self)
{
    (void)self;
    fail_msg("nobody stops the world but a sweep");
}

static void (*on_signal)(struct rf_self *self);

void rf_signals_deliver(void)
{
    rf_hot.self->pending_signals = 0;
    if (on_signal)
        on_signal(rf_hot.self);
}

static unsigned sweeps, named_exactly, named_nearby;

void rf_world_stop(struct rf_self *self)
{
    assert_false(self->busy);
    sweeps++;
}

void rf_world_go(struct rf_self *self)
{
    (void)self;
}

void rf_world_fence(void)
{
}

/* No transactions. */
void rf_txn_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    (void)self, (void)addr, (void)size, (void)flags, (void)pc;
}

void rf_txn_new_memory(struct rf_self *self, uintptr_t addr, size_t size)
{
    (void)self, (void)addr, (void)size;
}

/* No escape analysis here: it looks at the memory itself, and there is none. */
uint16_t **rf_escape_leaves;
struct rf_fresh *rf_fresh_blocks;

void rf_escape_begin(void)
{
}

void rf_escape_flush(struct rf_self *self)
{
    (void)self;
}

bool rf_escape_filters(struct rf_self *self, uintptr_t addr, size_t size)
{
    (void)self, (void)addr, (void)size;
    return false;
}

void rf_quiet_end(void)
{
}

void rf_thread_fresh_slot(struct rf_self *self)
{
    (void)self;
    fail_msg("times do not run out here");
}

void rf_objects_forget(uintptr_t addr, size_t size)
{
    (void)addr, (void)size;
}

static void play_as(unsigned thread)
{
    if (rf_hot.self)
        ((struct player *)rf_hot.self)->hot = rf_hot;
    rf_hot = game.players[thread].hot;
    rf_hot.self = &game.players[thread].self;
}

static void begin_game(void)
{
    rf_hot.self = NULL;
    memset(&game, 0, sizeof game);
    for (unsigned i = 0; i < THREADS; i++) {
        struct player *player = &game.players[i];
        struct rf_self *self = &player->self;
        rf_memory_begin(&self->memory);
        self->engine.memory = &self->memory;
        self->order.time_limit = UINT32_MAX - 3;
        self->thread.slot = self->number = i;
        self->block_slot = UINT32_MAX;
        self->moments = player->moments;
        self->moments_mask = RF_MOMENT_CACHE - 1;
        self->frames = player->frames;
        player->frames[0].pc = 0x1000; /* without a frame the quick ways know no place */
        player->hot.top = player->frames + 1;
        player->hot.seen = self->seen = player->seen;
        rf_clock_set(&self->thread.clock, &self->memory, i, 1);
        player->clock[i] = 1;
        play_as(i);
        rf_epoch_begin(self);
    }
}

/* What the access races with in the model: conflicts that do not happen before it. */
static bool races(const struct kept *now, const struct kept *before)
{
    bool writes = (now->flags | before->flags) & RF_A_WRITE, atomic = now->flags & before->flags & RF_A_ATOMIC;
    return now->granule == before->granule && now->first < before->end && before->first < now->end && writes && !atomic &&
           before->time > game.players[now->thread].clock[before->thread];
}

static uintptr_t address_of(unsigned granule)
{
    return 0x1000 + granule * RF_GRANULE;
}

static void forget(unsigned granule, unsigned first, unsigned end)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < game.count; i++) {
        struct kept k = game.kept[i];
        if (k.granule == granule && k.first >= first && k.end <= end)
            continue;
        if (k.granule == granule && k.first < end && first < k.end) { /* a part of it stays */
            if (k.first < first && k.end > end) {
                struct kept right = k;
                right.first = (uint8_t)end;
                game.kept[kept++] = right; /* there is room: this one made it */
                assert_true(kept <= i);
            }
            if (k.first < first)
                k.end = (uint8_t)first;
            else
                k.first = (uint8_t)end;
        }
        game.kept[kept++] = k;
    }
    game.count = kept;
    rf_range_clear(address_of(granule) + first, end - first);
    for (unsigned i = 0; i < THREADS; i++) /* what is kept may be of the memory's former life; not here, to see that it is else right */
        rf_nearby_clear(&game.players[i].self);
    for (unsigned i = 0; i < THREADS; i++) /* as if each had been told of it */
        game.players[i].self.stamp++;
}

static bool mostly_whole; /* nearly all accesses are plain ones to all of a granule */
static bool mostly_parts; /* nearly all are plain ones by a thread that goes on for a while, and then hands over to another one */
static bool mostly_atomic; /* nearly all are atomic ones to the same bytes of each */

static unsigned straight_steps; /* of atomic accesses */

/* As rf_atomic_access(), but the step is made where an access is repeated, too, as rf_atomic_quick_updated() makes it. */
static void atomic_access(uintptr_t addr, unsigned size, unsigned flags, uintptr_t pc)
{
    if (pc % 2) {
        rf_atomic_access(rf_hot.self, addr, size, flags, pc);
        return;
    }
    rf_busy_begin(rf_hot.self);
    bool stepped = rf_atomic_step(rf_hot.self, addr, size, flags, pc);
    rf_busy_end(rf_hot.self);
    straight_steps += stepped;
    if (!stepped)
        rf_access(addr, size, flags, pc);
}

/* As a hook that knows size and kind. */
static void sized_hook(uintptr_t addr, uintptr_t pc, unsigned size, unsigned flags)
{
#define HOOK(bytes)                                                                                                          \
    if (size == (bytes))                                                                                                     \
        flags ? rf_slow_write##bytes(addr, pc) : rf_slow_read##bytes(addr, pc);
    RF_SLOW_SIZES(HOOK)
#undef HOOK
}

static unsigned skipped, lanes_with_y;

/* As a hook that finds a repetition, and does nothing. */
static bool skips(uintptr_t addr, unsigned size, unsigned flags)
{
    bool repeats = !rf_pacer && rf_skip_repeated(addr, addr + size, flags) == addr + size;
    skipped += repeats;
    return repeats;
}

static void access_step(uint64_t *random, unsigned thread, uint64_t seed)
{
    static const unsigned kinds[] = { 0, 0, 0, RF_A_WRITE, RF_A_WRITE, RF_A_ATOMIC, RF_A_ATOMIC | RF_A_WRITE };
    struct kept now = { .thread = thread, .granule = (uint8_t)random_below(random, GRANULES) };
    unsigned size = 1u << random_below(random, 4);
    if (size == 1 && random_below(random, 4) == 0)
        size = 1 + random_below(random, 8);
    now.first = (uint8_t)random_below(random, 9 - size);
    if (random_below(random, 4))
        now.first = (uint8_t)(now.first / size * size);
    now.end = (uint8_t)(now.first + size);
    now.flags = kinds[random_below(random, sizeof kinds / sizeof *kinds)];
    if (mostly_whole && random_below(random, 32)) {
        now.first = 0;
        now.end = (uint8_t)(size = RF_GRANULE);
        now.flags = random_below(random, 4) ? 0 : RF_A_WRITE;
    }
    if (mostly_parts && random_below(random, 512))
        now.flags &= ~RF_A_ATOMIC;
    if (mostly_atomic && random_below(random, 16) == 0) /* a record stays one else */
        forget(now.granule, 0, RF_GRANULE);
    if (mostly_atomic && random_below(random, 8)) {
        size = 2u << now.granule;
        now.first = (uint8_t)(RF_GRANULE - size);
        now.end = RF_GRANULE;
        now.flags = RF_A_ATOMIC | (random_below(random, 4) ? RF_A_WRITE : 0);
    }
    now.pc = 0x4000 + random_below(random, mostly_atomic ? 2 : PLACES);
    now.time = game.players[thread].clock[thread];
    now.sampled = !rf_pacer || rf_gate[RF_GATE_SAMPLING];
    const struct kept *last[RF_GRANULE] = { NULL }; /* that race, for each byte */
    bool expected = false, named = false, near = false;
    game.reported = false;
    bool straight = now.flags & RF_A_ATOMIC && !(size & (size - 1)) && rf_policy == RF_POLICY_CAS && !rf_pacer && !rf_policy_no_hot;
    if (straight && random_below(random, 4))
        atomic_access(address_of(now.granule) + now.first, size, now.flags, now.pc);
    else if ((now.flags & RF_A_ATOMIC) || random_below(random, 3) == 0)
        rf_access(address_of(now.granule) + now.first, size, now.flags, now.pc);
    else if (random_below(random, 4) && skips(address_of(now.granule) + now.first, size, now.flags))
        now.pc = 0; /* what is told of it is an earlier access's place */
    else if (!(size & (size - 1)) && random_below(random, 2)) {
        if (random_below(random, 8) == 0) /* as in a function that was just entered */
            rf_hot.top[-1].node = 0;
        sized_hook(address_of(now.granule) + now.first, now.pc, size, now.flags);
    } else
        rf_slow_access(address_of(now.granule) + now.first, now.pc, size, now.flags);
    uint64_t word = *rf_word(address_of(now.granule));
    lanes_with_y += rf_word_has_lanes(word) && RF_WORD_Y(word);
    uintptr_t pc = 0;
    if (game.reported)
        assert_int_equal(rf_note_stack(game.note, &pc, 1), 1);
    for (unsigned i = 0; i < game.count; i++) {
        const struct kept *k = &game.kept[i];
        for (unsigned byte = 0; byte < RF_GRANULE && races(&now, k); byte++)
            if (byte >= k->first && byte < k->end && byte >= now.first && byte < now.end)
                last[byte] = k;
        if (!races(&now, k) || !k->sampled)
            continue;
        expected = true;
        named |= game.reported && k->thread == game.thread && k->pc == pc && k->flags == rf_note_flags(game.note);
        near |= game.reported && k->thread == game.thread && k->flags == rf_note_flags(game.note);
    }
    if (rf_pacer && expected && !game.reported) { /* detect/pacer.h, 3: it must have been the last one */
        expected = false;
        for (unsigned byte = 0; byte < RF_GRANULE; byte++)
            expected |= last[byte] && last[byte]->sampled;
    }
    if (expected != game.reported)
        fail_msg("seed %llu: thread %u, granule %u, bytes %u-%u, flags %u: a race is %s", (unsigned long long)seed, thread,
                 now.granule, now.first, now.end, now.flags, expected ? "missed" : "invented");
    named_exactly += named;
    named_nearby += near && !named;
    if (expected && (game.exact ? !named : !near))
        fail_msg("seed %llu: a race is reported with an access that it does not race with", (unsigned long long)seed);
    if (game.count == KEPT || expected) /* promises end with the first race */
        forget(now.granule, 0, RF_GRANULE);
    else
        game.kept[game.count++] = now;
}

static void release_step(unsigned thread, unsigned lock)
{
    struct player *player = &game.players[thread];
    rf_clock_join(&game.locks[lock], &player->self.memory, &player->self.thread.clock);
    rf_epoch_begin(&player->self);
    for (unsigned i = 0; i < THREADS; i++)
        if (game.lock_clocks[lock][i] < player->clock[i])
            game.lock_clocks[lock][i] = player->clock[i];
    player->clock[thread]++;
}

static void acquire_step(unsigned thread, unsigned lock)
{
    struct player *player = &game.players[thread];
    rf_clock_join(&player->self.thread.clock, &player->self.memory, &game.locks[lock]);
    for (unsigned i = 0; i < THREADS; i++)
        if (player->clock[i] < game.lock_clocks[lock][i])
            player->clock[i] = game.lock_clocks[lock][i];
}

/* A period begins or ends. Outside, every line of which anything is known must be found. */
static void turn_period(void)
{
    rf_detour = rf_gate[RF_GATE_SAMPLING];
    rf_gate[RF_GATE_SAMPLING] = !rf_detour;
    for (unsigned i = 0; i < GRANULES; i++)
        if (*rf_word(address_of(i)) && rf_pacer_knows_nothing(address_of(i), RF_GRANULE))
            fail_msg("what is known of granule %u is not found", i);
}

static bool sweeps_by_chance; /* however many moments are left */

static void sweep_now(void)
{
    rf_hot.self->wants_sweep = true;
    rf_sweep(rf_hot.self);
}

/* The thread of the next step; nearly always all that others did happens before. */
static unsigned next_part(uint64_t *random, unsigned *present)
{
    if (random_below(random, 24) == 0) {
        play_as(*present);
        release_step(*present, 0);
        *present = random_below(random, THREADS);
        play_as(*present);
        if (random_below(random, 32))
            acquire_step(*present, 0);
    }
    return *present;
}

static void play(uint64_t seed)
{
    uint64_t random = seed;
    begin_game();
    unsigned hand_over = 1 + random_below(&random, 6); /* how often threads meet */
    unsigned present = 0;
    long_epoch = 3 * (uint32_t)(seed % 3);
    for (unsigned step = 0; step < 3000; step++) {
        unsigned thread = mostly_parts ? next_part(&random, &present) : random_below(&random, mostly_atomic ? 3 : THREADS);
        if (rf_policy == RF_POLICY_FIB && rf_hot.self && random_below(&random, 8))
            rf_policy_parks(rf_hot.self); /* else whoever asks must take over */
        play_as(thread);
        unsigned what = random_below(&random, 8);
        if (rf_pacer && random_below(&random, 16) == 0)
            turn_period();
        if (mostly_parts && what < hand_over && random_below(&random, 64))
            access_step(&random, thread, seed);
        else if (what < hand_over && what % 2)
            acquire_step(thread, random_below(&random, LOCKS));
        else if (what < hand_over)
            release_step(thread, random_below(&random, LOCKS));
        else if (what == 7 && random_below(&random, 8) == 0)
            forget(random_below(&random, GRANULES), 4 * random_below(&random, 2),
                   RF_GRANULE); /* all of it, or the upper half */
        else if (sweeps_by_chance && random_below(&random, 256) == 0)
            sweep_now();
        else
            access_step(&random, thread, seed);
    }
    for (unsigned i = 0; i < GRANULES; i++)
        forget(i, 0, RF_GRANULE);
    for (uint32_t block = 1; block < RF_MOMENT_BLOCKS; block++)
        if (rf_moments_in_use(block))
            rf_moments_free(block);
    rf_cells_forget();
}

static int begin(void **state)
{
    (void)state;
    assert_true(rf_planes_begin());
    assert_false(rf_planes_lazy());
    rf_depot_begin();
    rf_moments_begin();
    return 0;
}

static void test_random_accesses(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1000; seed++)
        play(seed);
    assert_true(sweeps > 1000);
    assert_true(named_exactly > 20 * named_nearby); /* only what a sweep took away */
}

static unsigned lanes_in_use(void)
{
    unsigned count = taken[3] - !!taken[3]; /* the first one is none */
    for (unsigned i = 0; i < RF_STRIPES; i++) {
        count -= rf_stripes[i].end_lanes - rf_stripes[i].next_lanes;
        for (uint32_t free = rf_stripes[i].free_lanes; free; free = (uint32_t)*rf_lane_at(RF_LANES_FIRST + free))
            count--;
    }
    return count;
}

/* Lanes whose words have an epoch (guest/lanes.h, 2). */
static void test_lanes(void **state)
{
    (void)state;
    mostly_parts = true;
    skipped = lanes_with_y = 0;
    for (uint64_t seed = 1401; seed <= 2000; seed++)
        play(seed);
    play(3721); /* lanes would be left for a cell that was read since it was written */
    mostly_parts = false;
    print_message("%u accesses were repetitions; after %u lanes had an epoch\n", skipped, lanes_with_y);
    assert_true(skipped > 100000 && lanes_with_y > 100000);
    assert_int_equal(lanes_in_use(), 0);
}

/* Where atomics are used: the straight way (guest/first_atomic.h). */
static void test_atomics(void **state)
{
    (void)state;
    mostly_atomic = true;
    for (uint64_t seed = 1001; seed <= 1400; seed++)
        play(seed);
    mostly_atomic = false;
    assert_true(straight_steps > 5000);
}

/* Random accesses under every policy, with the accesses that hooks would have decided and without. */
static void test_policies(void **state)
{
    (void)state;
    static const char *const names[] = { "none", "spin", "cas", "fib" };
    for (unsigned i = 0; i < 8; i++) {
        uint64_t looks = 0;
        rf_options.sync = names[i / 2];
        rf_options.stats = i % 2;
        rf_policy_begin();
        for (uint64_t seed = 2000 + i; seed < 2040 + i; seed++) {
            mostly_whole = seed % 2;
            play(seed);
            for (unsigned j = 0; j < THREADS; j++)
                for (unsigned k = 0; k < RF_TRANSITIONS; k++)
                    looks += game.players[j].self.transitions[k];
        }
        assert_true(!rf_policy == !looks);
    }
    /* All that fib has was used: conflicts with parked owners and others, maps that were divided or written over. */
    print_message("fib: %zu self-served, %zu taken over, %zu acknowledgements, %zu taken over\n", (size_t)done.self_served,
                  (size_t)done.taken_over, (size_t)done.acks, (size_t)done.acks_taken_over);
    assert_true(done.self_served > 1000 && done.taken_over > 100 && done.acks_taken_over > 100);
    mostly_whole = false;
    rf_options.sync = "cas";
    rf_options.stats = false;
    rf_policy_begin();
    rf_detour = false; /* of the policies before; the tests that follow go the quick ways */
}

/* What the slices say of a byte: its last write, and the sum of all that it was last read in. */
struct byte_history {
    uint32_t w;
    uint64_t readers;
};

static struct byte_history history_of(const struct rf_slices *slices, unsigned byte)
{
    struct byte_history history = { 0 };
    for (unsigned i = 0; i < slices->count; i++) {
        uint32_t r = rf_slice_r(&slices->list[i]), set = r & ~RF_IS_SET;
        if (!(slices->list[i].mask >> byte & 1))
            continue;
        history.w = rf_slice_w(&slices->list[i]);
        if (!(r & RF_IS_SET)) {
            history.readers += UINT64_C(1) << 32 | r;
            continue;
        }
        for (unsigned j = 0; j < rf_readers_at(set)->count; j++)
            history.readers += UINT64_C(1) << 32 | rf_readers_list(rf_readers_at(set))[j];
    }
    return history;
}

/* What a quick way makes of a word: rf_word_quick(), or first_step(). false: it leaves that to others, or has another moment for it. */
static bool by_quick_way(bool first, const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
{
    if (!first)
        return rf_word_quick(step, word, mask, next);
    uint64_t *place = rf_word(address_of(0));
    struct rf_cached_moment cached = { .note = rf_moment_note(step->now), .moment = step->now };
    *place = word;
    bool stepped = first_step(step->self, &cached, address_of(0), mask, 0x6000, RF_GRANULE, step->flags, true);
    *next = *place;
    *place = 0;
    return stepped && (RF_WORD_Y(word) == step->now || !rf_moment_is_hot(RF_WORD_Y(word)));
}

/* What they make is what the rules say. */
static void test_quick(void **state)
{
    (void)state;
    uint64_t random = 7;
    begin_game();
    uint32_t moments[12] = { 0 };
    for (unsigned i = 1; i < 12; i++) {
        unsigned thread = i % 3;
        play_as(thread);
        moments[i] = rf_moment_now(rf_hot.self, 0x5000 + i, i % 2, 8);
        if (i % 2)
            rf_epoch_begin(rf_hot.self);
        if (i % 4 == 3)
            rf_clock_join(&game.players[0].self.thread.clock, &game.players[0].self.memory, &rf_hot.self->thread.clock);
    }
    play_as(0);
    uint32_t now = rf_moment_now(rf_hot.self, 0x6000, 0, 8);
    unsigned quick[2] = { 0 }, pairs_met = 0, twos = 0;
    for (unsigned i = 0; i < 400000; i++) {
        bool first = random_below(&random, 2);
        unsigned m = random_below(&random, 3) ? random_below(&random, 256) : 0xff;
        uint32_t y = random_below(&random, 4) ? moments[random_below(&random, 12)] : now, x = moments[random_below(&random, 12)];
        bool writes = random_below(&random, 2);
        bool mixed = writes && y && random_below(&random, 3) == 0;
        uint32_t pair = rf_cell_named(x, moments[random_below(&random, 12)]);
        if (pair && random_below(&random, 3) == 0)
            x = pair;
        pairs_met += rf_cell_is_pair(x);
        uint64_t word = RF_WORD(mixed ? random_below(&random, RF_LOOSE_END) : m, y, x) | (writes ? RF_WRITES_BIT : 0) |
                        (mixed ? RF_ODD_BIT : 0);
        unsigned mask = ((1u << (1 + random_below(&random, 8))) - 1) << random_below(&random, 8) & 0xff;
        if (random_below(&random, 4) == 0)
            mask = 0xff;
        struct rf_step step = { .self = rf_hot.self, .now = now, .flags = random_below(&random, 2) }, slow = step;
        slow.stripe = rf_stripe_of(&word);
        uint64_t next;
        if (!mask || !m || (y == now && !writes && x == now) || rf_word_repeats(&word, word, mask, step.flags) ||
            !by_quick_way(first, &step, word, mask, &next))
            continue;
        quick[first]++;
        struct rf_slices slices, got;
        rf_slices_of(word, &slices);
        rf_slices_step(&slices, mask, &slow);
        assert_false(slow.race);
        rf_slices_of(next, &got);
        twos += got.twofold;
        for (unsigned byte = 0; byte < 8; byte++) {
            struct byte_history a = history_of(&slices, byte), b = history_of(&got, byte);
            if (a.w != b.w || a.readers != b.readers)
                fail_msg("word %llx mask %x flags %u: byte %u has %x %llx, not %x %llx", (unsigned long long)word, mask, step.flags,
                         byte, b.w, (unsigned long long)b.readers, a.w, (unsigned long long)a.readers);
        }
        for (unsigned j = 0; j < slices.count; j++)
            ftm_clear(&slow, &slices.list[j].cell);
    }
    assert_true(quick[0] > 10000 && quick[1] > 10000 && pairs_met > 10000 && twos > 100);
}

/* All lanes are in use: records take their place, and the model is met as well. */
static void test_no_lanes(void **state)
{
    (void)state;
    begin_game();
    for (unsigned i = 0; i < RF_STRIPES; i++)
        rf_stripes[i].free_lanes = rf_stripes[i].next_lanes = rf_stripes[i].end_lanes = 0;
    uint32_t before = taken[3];
    lanes_most = 0;
    for (uint64_t seed = 3000; seed < 3060; seed++)
        play(seed);
    assert_int_equal(taken[3], before);
    for (unsigned i = 0; i < RF_STRIPES; i++)
        assert_int_equal(rf_stripes[i].free_lanes, 0);
    lanes_most = UINT32_C(1) << 20;
}

/* More histories than there are moments; then most of them go. Accesses are recorded again. */
static void test_scarce_moments(void **state)
{
    (void)state;
    const uintptr_t at = 0x400000;
    begin_game();
    play_as(0);
    uint64_t lost = rf_moments_lost;
    for (unsigned i = 0; i < 2u << RF_MOMENT_BITS; i++) {
        rf_slow_access(at + i * RF_GRANULE, 0x4000, RF_GRANULE, RF_A_WRITE);
        rf_epoch_begin(rf_hot.self);
    }
    assert_true(rf_moments_lost > lost);
    rf_range_clear(at, (RF_GRANULE << RF_MOMENT_BITS) * 3 / 4);
    for (unsigned i = 0; i < 4u << RF_MOMENT_BITS; i++) {
        rf_slow_access(at, 0x4000 + i % PLACES, RF_GRANULE, RF_A_WRITE);
        rf_epoch_begin(rf_hot.self);
    }
    lost = rf_moments_lost;
    rf_slow_access(at + RF_GRANULE, 0x4000, RF_GRANULE, RF_A_WRITE);
    assert_int_equal(rf_moments_lost, lost);
    play_as(1);
    game.reported = false;
    rf_slow_access(at + RF_GRANULE, 0x4001, RF_GRANULE, RF_A_WRITE);
    assert_true(game.reported);
    rf_range_clear(at, RF_GRANULE * (4u << RF_MOMENT_BITS));
}

/* Nearly all moments are in histories, and no pairs: each sweep comes before there are none left. */
static void test_nearly_scarce_moments(void **state)
{
    (void)state;
    const uintptr_t at = 0x400000;
    begin_game();
    play_as(0);
    sweep_now(); /* what the games before have left goes */
    const unsigned histories = (blocks.moments.end - blocks.moments.used - 8) * RF_MOMENT_BLOCK;
    uint64_t lost = rf_moments_lost;
    for (unsigned i = 0; i < 8 * histories; i++) {
        rf_slow_access(at + i % histories * RF_GRANULE, 0x4000, RF_GRANULE, RF_A_WRITE);
        rf_epoch_begin(rf_hot.self);
    }
    assert_int_equal(rf_moments_lost, lost);
    rf_range_clear(at, RF_GRANULE * histories);
}

/* One exit too many, of a function that was entered before the thread was known. */
static void test_frames_below(void **state)
{
    (void)state;
    begin_game();
    play_as(0);
    rf_hot.self->frames += 2;
    rf_hot.top = rf_hot.self->frames - 1;
    assert_int_equal(rf_depot_node(rf_hot.self), 0);
    assert_ptr_equal(rf_hot.top, rf_hot.self->frames);
}

static void release_in_handler(struct rf_self *self)
{
    (void)self;
    release_step(0, 0);
}

/* A handler that interrupts a long range releases a lock: what the range goes on with comes after it. */
static void test_long_range(void **state)
{
    (void)state;
    const size_t size = 65536 * RF_GRANULE, rest = 64;
    begin_game();
    play_as(0);
    on_signal = release_in_handler;
    rf_hot.self->pending_signals = 1;
    rf_access(0x100000, size + rest, RF_A_WRITE, 0x4000);
    on_signal = NULL;
    play_as(1);
    acquire_step(1, 0);
    game.reported = false;
    rf_access(0x100000, size, RF_A_WRITE, 0x4001);
    assert_false(game.reported);
    rf_access(0x100000 + size, rest, RF_A_WRITE, 0x4001);
    assert_true(game.reported);
    rf_range_clear(0x100000, size + rest);
}

/* Sets of thousands, more than are looked at without the lock: their lists stay mapped, empty, and are used again. */
static void test_large_sets(void **state)
{
    (void)state;
    const uint32_t count = 20000;
    struct rf_stripe *stripe = &rf_stripes[0];
    const uint32_t *list = NULL;
    for (unsigned turn = 0; turn < 3; turn++) {
        uint32_t set = rf_readers_new(stripe);
        for (uint32_t i = 1; i <= count; i++)
            rf_readers_add(set, i + turn);
        struct rf_readers *readers = rf_readers_at(set);
        assert_int_equal(readers->count, count);
        for (uint32_t i = 1; i <= count; i++)
            assert_int_equal(rf_readers_list(readers)[i - 1], i + turn);
        assert_true(!list || list == readers->many);
        list = readers->many;
        rf_readers_end(stripe, set);
        assert_int_equal(list[count], 0);
    }
}

#include "tests/unit/guest_accu.inc"
#include "tests/unit/guest_multi.inc"
#include "tests/unit/guest_pacer.inc"

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_quick), cmocka_unit_test(test_random_accesses), cmocka_unit_test(test_atomics),
                                        cmocka_unit_test(test_pacer), cmocka_unit_test(test_lines),
                                        cmocka_unit_test(test_lanes),
                                        cmocka_unit_test(test_no_lanes),
                                        cmocka_unit_test(test_policies), cmocka_unit_test(test_scarce_moments),
                                        cmocka_unit_test(test_nearly_scarce_moments),
                                        cmocka_unit_test(test_frames_below),
                                        cmocka_unit_test(test_long_range),
                                        cmocka_unit_test(test_large_sets), cmocka_unit_test(test_acculock),
                                        cmocka_unit_test(test_acculock_walks),
                                        cmocka_unit_test(test_acculock_atomics),
                                        cmocka_unit_test(test_multilock) };
    return cmocka_run_group_tests_name("guest granules", tests, begin, NULL);
}
