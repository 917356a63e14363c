/* Other detectors than FastTrack inside a Go program: the headers of detect/, put together with their cells by guest/online.inc, as in
 * programs in C.
 *
 *
 * A program has one of them inside, if it was built with `redflag go -d`, and uses it unless REDFLAG_OPTIONS says detector=fasttrack.
 *
 * 1. An engine, its cells, its clocks and its memory are touched only under one lock, other_lock, which is taken under a granule's.
 *    A race is told when neither is held.
 * 2. What Go's runtime tells becomes events: acquire is WAIT, release SIGNAL (after a FORGET, unless it merges), an atomic operation a
 *    volatile access. A release that acquires at once is told as an acquire and a release: the next to acquire also learns what this
 *    one learned, which may hide a race.
 * 3. Go's runtime does not say which of these are locks; to detectors that look at locks they must be. Mutexes are known by who does
 *    atomic operations on them: functions of package sync, by their names. What those functions do besides is left out. An object that
 *    was used as one has a mark (struct object, kind), and loses it with its memory.
 * 4. A goroutine's number is its index in the engine. When it ends a goroutine that never acts, REAPER, joins it, and what the engine
 *    kept of it goes. Its slot can have another owner (core/order.h, 2): clocks do not grow with the number of goroutines ever started.
 *    What stays of each is its name, where it was started, and since when it had its slot, for reports.
 * 5. PACER: outside of sampling periods, an access to a patch of memory of which nothing was sampled takes no lock. Such accesses are
 *    counted by the goroutine, and told to the sampler AT_ONCE at a time.
 */
#ifndef RF_GO_DETECTORS_H
#define RF_GO_DETECTORS_H

#include "go/objects.h"
#include "go/other.h"
#include "go/report.h"
#include "guest/access.h"
#include "guest/memory.h"
#include "guest/online.h"
#include "sample/periods.h"

#define REAPER 0u /* no goroutine: it would know all that has ended, and so would those whom it starts */
#define OTHER_NUMBER(g) ((g)->number + 1) /* the index of a goroutine */
#define NOBODY 1u /* who starts what Go's runtime starts: goroutine 0, which goes on without accesses */
#define AT_ONCE 64u

/* What guest/online.inc asks for. */
void *rf_pages(size_t bytes)
{
    return pages_at(0, bytes);
}

void rf_pages_back(void *pages, size_t bytes)
{
    pool_give_back(pages, bytes);
}

static const struct rf_online *other; /* NULL: FastTrack */

static bool others_listen(void)
{
    return __builtin_expect(other != NULL, 0);
}

static struct rf_options other_options;
static uint32_t other_lock;

/* Under the lock; `sampling` and `sampled` are also read without. */
static struct {
    struct fact {
        uint32_t created;
        bool ended;
    } * facts; /* by number */
    uint32_t cap;
    uint64_t number; /* of the last event */
    struct periods periods;
    bool samples, sampling;
} others;

static void others_begin(void)
{
    if (!strcmp(settings.detector, "fasttrack"))
        return;
    other = rf_go_other;
    if (*settings.detector && (!other || strcmp(settings.detector, other->name) != 0)) {
        write_all(2, settings.detector, strlen(settings.detector));
        write_all(2, ": ", 2);
        give_up("this detector is not inside the program; build it with `redflag go -d` and the detector's name");
    }
    if (!other)
        return;
    others.samples = !strcmp(other->name, "pacer");
    others.sampling = !others.samples;
    other_options.rate = others.samples ? (settings.rate < 0 ? 0.01 : settings.rate) : -1;
    other_options.seed = (uint64_t)settings.seed;
    other_options.period = (uint32_t)settings.period;
    other->begin(&other_options);
    struct rf_engine engine = { .options = &other_options };
    periods_init(&others.periods, &engine);
}

/* ---- events, under the lock ---- */

/* The sampler decides what begins before this event. */
static void others_turn(enum rf_op op, uint32_t events)
{
    others.number += events;
    struct rf_event event = { .op = op, .number = (uint32_t)others.number };
    for (enum rf_op turn; others.samples && (turn = periods_turn(&others.periods, &event)) != RF_OP_COUNT;) {
        other->sync(REAPER, turn, RF_FROM_SAMPLER);
        __atomic_store_n(&others.sampling, turn == RF_SAMPLE_BEGIN, __ATOMIC_RELAXED);
    }
}

static void others_event(uint32_t goroutine, enum rf_op op, uint64_t key)
{
    others_turn(op, 1);
    other->sync(goroutine, op, key);
}

static void others_tell(struct goroutine *g, enum rf_op op, uint64_t key)
{
    spin_lock(&other_lock);
    others_event(OTHER_NUMBER(g), op, key);
    spin_unlock(&other_lock);
}

/* ---- goroutines ---- */

static void others_started(const struct goroutine *parent, const struct goroutine *child, uint32_t created)
{
    spin_lock(&other_lock);
    others.facts = grown(others.facts, &others.cap, child->number + 1, sizeof *others.facts);
    others.facts[child->number].created = created;
    if (OTHER_NUMBER(child) != NOBODY)
        others_event(parent ? OTHER_NUMBER(parent) : NOBODY, RF_FORK, OTHER_NUMBER(child));
    spin_unlock(&other_lock);
}

static void others_ended(const struct goroutine *g)
{
    spin_lock(&other_lock);
    others.facts[g->number].ended = true;
    others_event(REAPER, RF_JOIN, OTHER_NUMBER(g) | RF_JOIN_LAST | (g->used ? 0 : RF_JOIN_QUIET));
    spin_unlock(&other_lock);
}

/* ---- accesses ---- */

static void others_found(struct goroutine *g, const struct rf_online_race *race, uint32_t note, bool write)
{
    struct report_side now = { race->addr, note, g->number, 0, write, false };
    struct report_side before = {
        race->addr, race->first.known ? race->first.note : 0, race->first.thread - 1, 0, race->first.writes, false
    };
    spin_lock(&other_lock);
    now.created = others.facts[g->number].created;
    if (before.goroutine < others.cap) {
        before.created = others.facts[before.goroutine].created;
        before.ended = others.facts[before.goroutine].ended;
    }
    spin_unlock(&other_lock);
    report_race(&now, &before);
}

/* Invariant 5. */
static inline bool others_pass(struct goroutine *g, uintptr_t addr)
{
    if (__atomic_load_n(&others.sampling, __ATOMIC_RELAXED) || __atomic_load_n(touched_of(cell_of(addr)), __ATOMIC_RELAXED))
        return false;
    if (++g->passed < AT_ONCE)
        return true;
    spin_lock(&other_lock);
    others_turn(RF_READ, g->passed);
    spin_unlock(&other_lock);
    g->passed = 0;
    return true;
}

static __attribute__((noinline)) void others_access(struct goroutine *g, uintptr_t addr, uintptr_t size, uintptr_t pc,
                                                    unsigned flags)
{
    struct rf_online_access access = { .thread = OTHER_NUMBER(g), .flags = flags };
    struct rf_online_race race, found;
    bool raced = false;
    for (uintptr_t end = addr + size, length; addr < end; addr += length) {
        length = RF_GRANULE - addr % RF_GRANULE;
        length = length < end - addr ? length : end - addr;
        if (others_pass(g, addr))
            continue;
        if (!access.note)
            access.note = note_here(g, pc);
        __atomic_store_n(touched_of(cell_of(addr)), 1, __ATOMIC_RELAXED);
        g->used = true;
        spin_lock(&other_lock);
        others_turn(flags & RF_A_WRITE ? RF_WRITE : RF_READ, 1);
        if (other->access(&access, addr, (unsigned)length, &race) && !raced) {
            raced = true;
            found = race;
        }
        spin_unlock(&other_lock);
    }
    if (raced)
        others_found(g, &found, access.note, flags & RF_A_WRITE);
}

/* Memory is new. What orders goroutines through it is forgotten. */
static void others_clear(uintptr_t addr, uintptr_t size)
{
    struct rf_online_access access = { 0 };
    struct rf_online_race race;
    for (uintptr_t end = addr + size, length; addr < end; addr += length) {
        length = PATCH - addr % PATCH;
        length = length < end - addr ? length : end - addr;
        if (!*touched_of(cell_of(addr)))
            continue;
        spin_lock(&other_lock);
        other->memory(&access, RF_ALLOC, addr, (unsigned)length, &race);
        spin_unlock(&other_lock);
    }
}

static void others_forget(uintptr_t addr)
{
    spin_lock(&other_lock);
    other->sync(REAPER, RF_FORGET, addr);
    spin_unlock(&other_lock);
}

/* ---- locks: invariant 3 ---- */

enum { NOT_A_LOCK, LOCK_MUTEX, LOCK_READERS, LOCK_WRITERS }; /* struct object, kind */
enum {
    IN_NO_MUTEX = 1,
    IN_LOCK,
    IN_UNLOCK,
    IN_RLOCK,
    IN_RUNLOCK,
    IN_RW_LOCK,
    IN_RW_LOCK_AGAIN,
    IN_RW_UNLOCK
}; /* goroutine, mutex_kind */

/* sync.RWMutex: readers release to writerSem, all else goes by readerSem, which follows it. */
#define READERS_AFTER_WRITERS 4

static uint32_t function_kind(uintptr_t pc)
{
    static const struct {
        const char *name;
        uint32_t kind;
    } functions[] = {
        { "sync.(*Mutex).Lock", IN_LOCK },
        { "sync.(*Mutex).lockSlow", IN_LOCK },
        { "sync.(*Mutex).TryLock", IN_LOCK },
        { "sync.(*Mutex).Unlock", IN_UNLOCK },
        { "sync.(*Mutex).unlockSlow", IN_UNLOCK },
        { "sync.(*RWMutex).RLock", IN_RLOCK },
        { "sync.(*RWMutex).TryRLock", IN_RLOCK },
        { "sync.(*RWMutex).RUnlock", IN_RUNLOCK },
        { "sync.(*RWMutex).rUnlockSlow", IN_RUNLOCK },
        { "sync.(*RWMutex).Lock", IN_RW_LOCK },
        { "sync.(*RWMutex).TryLock", IN_RW_LOCK },
        { "sync.(*RWMutex).Unlock", IN_RW_UNLOCK },
    };
    struct code code = { .pc = pc - 1 };
    go_callback(SYMBOLIZE_CODE, &code);
    for (unsigned i = 0; code.found && i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(code.function, functions[i].name))
            return functions[i].kind;
    return IN_NO_MUTEX;
}

/* In which function of package sync this address is. Each is asked for once: kinds by address, written under the lock and read without;
 * an entry never changes. */
static uint32_t function_at(uintptr_t pc)
{
    static struct {
        uintptr_t pc;
        uint32_t kind;
    } known[4096];
    unsigned at = (unsigned)(rf_hash(pc) % 4096), looks = 0;
    for (; looks < 64; looks++, at = (at + 1) % 4096) {
        uintptr_t there = __atomic_load_n(&known[at].pc, __ATOMIC_ACQUIRE);
        if (there == pc)
            return known[at].kind;
        if (!there)
            break;
    }
    uint32_t kind = function_kind(pc);
    spin_lock(&other_lock);
    if (looks < 64 && !known[at].pc) {
        known[at].kind = kind;
        __atomic_store_n(&known[at].pc, pc, __ATOMIC_RELEASE);
    }
    spin_unlock(&other_lock);
    return kind;
}

/* sync.RWMutex: its semaphores lie below the counters that its functions change. */
static bool is_of_last_mutex(const struct goroutine *g, const struct object *object)
{
    return g->mutex_addr - object->addr <= 16;
}

/* The four rules of order. The granule is locked. */
static void others_acquire(struct goroutine *g, struct object *object)
{
    uint32_t kind = is_of_last_mutex(g, object) ? g->mutex_kind : IN_NO_MUTEX;
    g->mutex_kind = IN_NO_MUTEX;
    if (kind == IN_LOCK && g->mutex_addr == object->addr) {
        object->kind = LOCK_MUTEX;
        others_tell(g, RF_ACQUIRE, object->addr);
    } else if (kind == IN_RLOCK || kind == IN_RW_LOCK) {
        object->kind = LOCK_READERS;
        others_tell(g, kind == IN_RLOCK ? RF_READ_ACQUIRE : RF_ACQUIRE, object->addr);
        if (kind == IN_RW_LOCK)
            g->mutex_kind = IN_RW_LOCK_AGAIN;
    } else if (kind == IN_RW_LOCK_AGAIN) {
        object->kind = LOCK_WRITERS; /* what readers released came with the first of the two */
    } else
        others_tell(g, RF_WAIT, object->addr);
}

/* A semaphore of writers is known by that of readers behind it, if nobody has locked for writing yet: it may be in the next granule,
 * whose locks come after this one's. */
static bool is_of_writers(struct object *first, const struct object *object)
{
    uintptr_t readers = object->addr + READERS_AFTER_WRITERS;
    if (cell_of(readers) != cell_of(object->addr)) {
        uint32_t *lock;
        const struct cell *cell = cell_of(readers);
        bool has = __atomic_load_n(&cell->w, __ATOMIC_ACQUIRE) & OBJECT; /* else what is there may be an extra that is locked */
        const struct object *next = has ? object_found(cell, readers, &lock) : NULL;
        bool found = next && next->kind == LOCK_READERS;
        if (next)
            spin_unlock(lock);
        return found;
    }
    const struct object *behind = object_among(first, readers);
    return behind && behind->kind == LOCK_READERS;
}

static void others_release(struct goroutine *g, struct object *first, struct object *object, bool merge)
{
    if (object->kind == LOCK_MUTEX || object->kind == LOCK_READERS) {
        others_tell(g, RF_RELEASE, object->addr);
        return;
    }
    if (merge && object->addr % 4 == 0 && (object->kind == LOCK_WRITERS || is_of_writers(first, object))) {
        object->kind = LOCK_WRITERS;
        others_tell(g, RF_READ_RELEASE, object->addr + READERS_AFTER_WRITERS);
        return;
    }
    spin_lock(&other_lock);
    if (!merge)
        other->sync(OTHER_NUMBER(g), RF_FORGET, object->addr);
    others_event(OTHER_NUMBER(g), RF_SIGNAL, object->addr);
    g->used = false;
    spin_unlock(&other_lock);
}

/* An atomic operation, in the order in which it took effect. true: it belongs to a lock, and is no event. */
static bool others_lock_function(struct goroutine *g, uintptr_t call, uintptr_t addr)
{
    g->mutex_addr = addr;
    g->mutex_kind = function_at(call);
    return g->mutex_kind != IN_NO_MUTEX;
}

static void others_atomic(struct goroutine *g, uintptr_t addr, bool acquire, bool release)
{
    spin_lock(&other_lock);
    if (acquire)
        others_event(OTHER_NUMBER(g), RF_VOLATILE_READ, addr);
    if (release)
        others_event(OTHER_NUMBER(g), RF_VOLATILE_WRITE, addr);
    spin_unlock(&other_lock);
}

#endif
