/* See guest/online.h.
 *
 * 1. `lock` is the lock of guest/online.h, 1. Whoever takes it is busy and takes no other after it. It may be taken under an object's.
 * 2. A listener belongs to one thread and is touched by it alone, but for its index, which is set under the lock with the first that is
 *    told of the thread, by itself or by its creator.
 * 3. A race is kept in the listener while something is held, and told by rf_online_tell(), before the access happens; an atomic access
 *    that is told with its object locked has happened by then. Where races are refused none is (guest/atomics.c, refuse_told).
 */
#include "guest/online.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "guest/access.h"
#include "guest/accu.h"
#include "guest/annotations.h"
#include "guest/depot.h"
#include "guest/memory.h"
#include "guest/moments.h"
#include "guest/ompt.h"
#include "guest/online_filter.h"
#include "guest/online_pairs.h"
#include "guest/options.h"
#include "guest/pacer.h"
#include "guest/pair.h"
#include "guest/refusal.h"
#include "guest/report.h"
#include "guest/spin.h"
#include "guest/text.h"
#include "guest/threads.h"
#include "guest/transactions.h"
#include "sample/literace.h"
#include "shadow/shadow.h"

#define AGAIN                                                                                                               \
    4096u /* bytes of a freed block that count as written after the free, too: an access there by another is a race */
#define AT_ONCE 64u /* granules of a long access, or pages of a block, for which the lock is held at once */

#define RF_ONLINE(name) extern const struct rf_online rf_online_##name;
#include "guest/online.def"
#undef RF_ONLINE

static const struct rf_online *const all[] = {
#define RF_ONLINE(name) &rf_online_##name,
#include "guest/online.def"
#undef RF_ONLINE
};

/* An access that was found to race, and was not recorded (guest/refusal.h, 2). */
struct refused {
    uintptr_t addr, pc;
    size_t size; /* 0: none */
    unsigned flags;
};

struct listener {
    struct rf_filter filter;
    struct rf_repeats *repeats; /* of a detector that finds pairs of sites; NULL: another one */
    struct literace sampler;    /* and what it needs of an engine */
    struct rf_engine engine;
    uint32_t accesses;             /* in sampling periods that are measured in time: from time to time it is looked at */
    uint32_t index, companions[3]; /* + 1; 0: none yet. companions[RF_TAP_SELF] is not used */
    struct rf_online_race races[RF_PENDING];
    struct rf_told told[RF_TOLD]; /* races that need not be told again */
    struct refused refused;
};

static const struct rf_online *detector;
static struct rf_tap listening;
static uint64_t changes; /* guest/online_filter.h; atomic */
static struct rf_options settings;
static uint32_t lock;
static bool by_time, by_function; /* pacer's periods; literace */
static uint64_t work;             /* synchronisation operations so far; under the lock */

/* Under the lock. */
static struct {
    uint32_t *indexes; /* number -> index + 1 */
    uint32_t *numbers; /* index -> number */
    uint32_t index_cap, number_cap, count;
    struct rf_memory memory;
} known;

/* ---- threads ---- */

static uint32_t new_index(uint32_t number)
{
    known.numbers = rf_grow(&known.memory, known.numbers, &known.number_cap, known.count + 1, sizeof *known.numbers);
    known.numbers[known.count] = number;
    return known.count++;
}

static uint32_t index_of(uint32_t number)
{
    known.indexes = rf_grow(&known.memory, known.indexes, &known.index_cap, number + 1, sizeof *known.indexes);
    if (!known.indexes[number])
        known.indexes[number] = new_index(number) + 1;
    return known.indexes[number] - 1;
}

static struct listener *listener_new(struct rf_self *self)
{
    struct listener *me = rf_take(sizeof *me); /* whole pages, which huge ones must not take the place of: most threads use a few */
    RF_SYSCALL(SYS_madvise, me, sizeof *me, MADV_NOHUGEPAGE);
    me->filter.stamp = 1 << 16;
    me->engine = (struct rf_engine){ .memory = &self->memory, .options = &settings };
    me->repeats = detector->pairs ? rf_take(sizeof *me->repeats) : NULL;
    literace_init(&me->sampler, &me->engine);
    me->sampler.random += self->number * UINT64_C(0x9e3779b97f4a7c15);
    rf_spin_lock(&lock);
    me->index = index_of(self->number);
    rf_spin_unlock(&lock);
    return self->online = me;
}

static inline struct listener *listener_of(struct rf_self *self)
{
    return __builtin_expect(self->online != NULL, 1) ? self->online : listener_new(self);
}

static void end(struct rf_self *self)
{
    struct listener *me = self->online;
    if (me && me->repeats)
        rf_give(me->repeats, sizeof *me->repeats);
    rf_give(me, me ? sizeof *me : 0);
    self->online = NULL;
    self->races = 0;
}

static inline struct rf_filter *filter_of(struct listener *me)
{
    uint64_t now = __atomic_load_n(&changes, __ATOMIC_RELAXED);
    if (__builtin_expect(me->filter.changes != now, 0)) {
        rf_filter_next(&me->filter);
        me->filter.changes = now;
    }
    return &me->filter;
}

/* ---- races ---- */

/* Predictions come in crowds: where a block is handed over by a lock, each access to it is one, from the same two places. */
static bool was_told(struct listener *me, const struct rf_online_race *race)
{
    uint64_t notes = (uint64_t)race->first.note << 32 | race->note;
    uint32_t how = (uint32_t)race->first.known << 2 | (uint32_t)race->first.predictive << 1 | race->first.writes;
    if (rf_refuses || rf_benign_any || !rf_options.suppress_equal_stacks)
        return false;
    struct rf_told *told = &me->told[(notes * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
    bool same = told->notes == notes && told->how == how;
    *told = (struct rf_told){ notes, how };
    return same;
}

static void found(struct rf_self *self, struct listener *me, const struct rf_online_access *access,
                  struct rf_online_race *race)
{
    race->note = access->note;
    race->flags = access->flags;
    if (detector->pairs)
        rf_pairs_keep(race, self->number);
    else if (self->races < RF_PENDING && !was_told(me, race))
        me->races[self->races++] = *race;
}

/* By `number`. True: it is to be refused. */
static bool tell(struct rf_self *self, const struct rf_online_race *race, uint32_t number, struct rf_report_side sides[2])
{
    rf_busy_begin(self);
    rf_spin_lock(&lock);
    uint32_t thread = race->first.thread < known.count ? known.numbers[race->first.thread] : number;
    rf_spin_unlock(&lock);
    rf_busy_end(self);
    uint32_t note = race->first.known ? race->first.note : 0;
    size_t size = note ? rf_note_size(note) : 0;
    struct rf_report_side second = { .addr = race->addr, .size = race->size, .note = race->note, .thread = number };
    struct rf_report_side first = { .addr = race->addr, .size = race->size, .note = note, .thread = thread, .previous = true };
    first.size = size < race->size ? size : race->size;
    second.predicted = race->first.predictive;
    second.past = detector->pairs;
    if (rf_benign(race->addr, race->size) || rf_ompt_internal(second.note) || (note && rf_ompt_internal(note)))
        return false;
    if (rf_refuses && !second.predicted) {
        sides[0] = second;
        sides[1] = first;
        return true;
    }
    rf_report_race(&second, &first);
    return false;
}

static void hear_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc);
static void hear_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc);
static void hear_unseen(void);

/* It was refused, and then allowed. */
static void record_allowed(struct rf_self *self, const struct refused *refused)
{
    if (!refused->size)
        return;
    hear_unseen(); /* others may race with it again, who had accessed the same before: their filters would not tell */
    self->late++; /* it is not compared again */
    bool mine = rf_busy_enter(self);
    if (refused->flags & RF_A_FREE)
        hear_memory(self, RF_FREE, refused->addr, refused->size, refused->pc);
    else
        hear_access(self, refused->addr, refused->size, refused->flags, refused->pc);
    self->races = 0; /* these were told */
    rf_busy_leave(self, mine);
    self->late--;
}

void rf_online_tell(struct rf_self *self)
{
    struct listener *me = self->online;
    struct rf_online_race races[RF_PENDING];
    uint32_t count = self->races;
    self->races = 0; /* a report may call the user, who may come here */
    for (uint32_t i = 0; i < count; i++)
        races[i] = me->races[i];
    struct rf_report_side sides[2];
    struct refused refused = me->refused;
    me->refused.size = 0;
    bool refuse = false;
    self->inside++; /* locks are taken: no handler of the program may come in between */
    for (uint32_t i = 0; i < count && !refuse; i++)
        refuse = tell(self, &races[i], self->number, sides);
    self->inside--;
    if (self->pending_signals) /* one came meanwhile */
        rf_signals_deliver();
    if (refuse)
        rf_refused(self, &sides[0], &sides[1]);
    record_allowed(self, &refused);
}

/* ---- accesses ---- */

/* ---- sampling ---- */

static uint32_t milliseconds(void)
{
    struct timespec now;
    RF_SYSCALL(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

/* Under the lock, before an operation. Outside of sampling periods only synchronisation comes here: that is the work that passes. */
static void turn(struct listener *me, enum rf_op op)
{
    static uint32_t first;
    if (!by_time) {
        detector->turn(me->index, op, (uint32_t)work);
        return;
    }
    if (op <= RF_WRITE && ++me->accesses % 64)
        return;
    uint32_t now = milliseconds();
    first = first ? first : now;
    detector->turn(me->index, op, now - first);
}

/* literace: a thread looks at a function the less, the more often it runs it. The function is known by the place that called it. */
static bool looks(struct rf_self *self, struct listener *me, bool write)
{
    uintptr_t caller = rf_hot.self == self && rf_hot.top > self->frames ? rf_hot.top[-1].pc : 0;
    struct rf_event event = { .op = write ? RF_WRITE : RF_READ, .thread = me->index, .site = (uint32_t)caller };
    return literace_look(&me->sampler, &event);
}

static inline unsigned mask_of(uintptr_t addr, size_t length)
{
    return ((1u << length) - 1) << addr % RF_GRANULE;
}

/* True: the access would race, which is kept to be told, and it is not recorded. */
static bool is_refused(struct rf_self *self, struct listener *me, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    struct rf_online_access access = { .thread = me->index, .flags = flags };
    struct rf_online_race race;
    bool filtered = detector->repeats && !(flags & RF_A_ATOMIC), races = false;
    if (self->late || detector->pairs) /* pairs are no races */
        return false;
    rf_spin_lock(&lock);
    for (uintptr_t at = addr, length; at < addr + size && !races; at += length) {
        length = RF_GRANULE - at % RF_GRANULE;
        if (length > addr + size - at)
            length = addr + size - at;
        if (filtered && rf_filter_has(&me->filter, at, mask_of(at, length), flags & RF_A_WRITE))
            continue;
        races = detector->races(&access, at, (unsigned)length, &race);
    }
    rf_spin_unlock(&lock);
    if (!races)
        return false;
    access.note = rf_moment_note_here(self, pc, flags, size);
    found(self, me, &access, &race);
    me->refused.addr = addr;
    me->refused.size = size;
    me->refused.flags = flags;
    me->refused.pc = pc;
    return true;
}

/* Under the lock. One that finds pairs is asked until it finds no more. */
static void do_access(struct rf_self *self, struct listener *me, const struct rf_online_access *access, uintptr_t addr,
                      unsigned size)
{
    struct rf_online_race race;
    while (detector->access(access, addr, size, &race)) {
        found(self, me, access, &race);
        if (!detector->pairs)
            break;
    }
}

static void hear_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    uint32_t site = detector->wants_site ? rf_pair_class(pc) : 0;
    if (detector->wants_site && !site)
        return;
    if (__builtin_expect(rf_benign_any, 0) && rf_benign(addr, size))
        return;
    struct listener *me = listener_of(self);
    if (by_function && !(flags & (RF_A_ATOMIC | RF_A_FREE)) && !looks(self, me, flags & RF_A_WRITE))
        return;
    struct rf_filter *filter = filter_of(me);
    if (__builtin_expect(rf_refuses, 0) && is_refused(self, me, addr, size, flags, pc))
        return;
    uintptr_t place = detector->pairs ? rf_tap_site(self, pc) : 0;
    struct rf_online_access access = { .thread = me->index, .site = site, .flags = flags };
    bool filtered = detector->repeats && !(flags & RF_A_ATOMIC), write = flags & RF_A_WRITE, locked = false;
    unsigned turns = 0;
    for (uintptr_t end_of = addr + size, length; addr < end_of; addr += length) {
        length = RF_GRANULE - addr % RF_GRANULE;
        if (length > end_of - addr)
            length = end_of - addr;
        unsigned mask = mask_of(addr, length);
        if (filtered && rf_filter_has(filter, addr, mask, write))
            continue;
        if (me->repeats && !(flags & RF_A_ATOMIC) &&
            rf_repeats_known(me->repeats, addr, length, write, place, filter->changes))
            continue;
        if (!access.note)
            access.note = rf_moment_note_here(self, pc, flags, size);
        if (!locked) {
            rf_spin_lock(&lock);
            locked = true;
            if (detector->has_periods && by_time)
                turn(me, write ? RF_WRITE : RF_READ);
            if (detector->pairs && !access.site)
                access.site = rf_pairs_site(place);
        }
        do_access(self, me, &access, addr, (unsigned)length);
        if (filtered)
            rf_filter_add(filter, addr, mask, write);
        if (++turns % AT_ONCE == 0) {
            rf_spin_unlock(&lock);
            locked = false;
        }
    }
    if (locked)
        rf_spin_unlock(&lock);
}

/* What the hooks jump to: most accesses repeat earlier ones. Whether the thread is inside, or ignores accesses, does not matter then. */
static void hook(uintptr_t addr, uintptr_t pc, uint64_t what)
{
    struct rf_self *self = rf_hot.self;
    if (__builtin_expect(self && self->online && !self->in_txn && !by_function, 1)) {
        struct rf_filter *filter = filter_of(self->online);
        unsigned mask = mask_of(addr, what >> 56);
        if (mask <= 0xff && rf_filter_has(filter, addr, mask, (what >> 48 & 0xff) == RF_WRITE + 1))
            return;
    }
    rf_access(addr, what >> 56, (what >> 48 & 0xff) == RF_WRITE + 1 ? RF_A_WRITE : 0, pc);
}

static void hook_of_pairs(uintptr_t addr, uintptr_t pc, uint64_t what)
{
    struct rf_self *self = rf_hot.self;
    bool write = (what >> 48 & 0xff) == RF_WRITE + 1;
    size_t size = what >> 56;
    if (__builtin_expect(self && self->online && !self->in_txn, 1) && addr % RF_GRANULE + size <= RF_GRANULE) {
        struct listener *me = self->online;
        if (rf_repeats_has(me->repeats, addr, size, write, pc, __atomic_load_n(&changes, __ATOMIC_RELAXED)))
            return;
    }
    rf_access(addr, size, write ? RF_A_WRITE : 0, pc);
}

/* ---- synchronisation ---- */

static uint32_t index_for(struct rf_self *self, struct listener *me, enum rf_tap_who who)
{
    if (who == RF_TAP_SELF)
        return me->index;
    if (!me->companions[who])
        me->companions[who] = new_index(self->number) + 1;
    return me->companions[who] - 1;
}

static bool hands_on(enum rf_op op)
{
    return op != RF_ACQUIRE && op != RF_READ_ACQUIRE;
}

/* Atomics have the rules of signals: the key is the object's, whatever it is used as. */
static enum rf_op as_signal(enum rf_op op)
{
    return op == RF_VOLATILE_READ ? RF_WAIT : op == RF_VOLATILE_WRITE ? RF_SIGNAL : op;
}

static void hear_sync(struct rf_self *self, enum rf_tap_who who, enum rf_op op, uint64_t key, uintptr_t pc)
{
    (void)pc;
    struct listener *me = listener_of(self);
    if (hands_on(op))
        rf_filter_next(&me->filter);
    rf_spin_lock(&lock);
    work++;
    if (detector->has_periods)
        turn(me, as_signal(op));
    if (op == RF_FORK || op == RF_JOIN)
        key = index_of((uint32_t)key);
    detector->sync(index_for(self, me, who), as_signal(op), key);
    rf_spin_unlock(&lock);
}

static void hear_forget(uint64_t key)
{
    struct rf_self *self = rf_hot.self;
    if (!self)
        return;
    bool mine = rf_busy_enter(self);
    struct listener *me = listener_of(self);
    rf_spin_lock(&lock);
    detector->sync(me->index, RF_FORGET, key);
    rf_spin_unlock(&lock);
    rf_busy_leave(self, mine);
}

/* ---- transactions ---- */

/* Bytes of a part that follow each other are one access. Returns where it begins, and how many there are; 0: no more. */
static unsigned next_run(unsigned *mask, unsigned *first)
{
    if (!*mask)
        return 0;
    *first = (unsigned)__builtin_ctz(*mask);
    unsigned length = (unsigned)__builtin_ctz(~(*mask >> *first));
    *mask &= ~(((1u << length) - 1) << *first);
    return length;
}

static void hear_commit(struct rf_self *self, const struct rf_commit_part *parts, uint32_t count)
{
    struct listener *me = listener_of(self);
    size_t bytes = (1 + 8 * (size_t)count) * sizeof(struct rf_event); /* a part has no more than eight accesses */
    struct rf_event *event = rf_pages(bytes);
    unsigned first, length;
    *event = (struct rf_event){ .thread = me->index, .op = RF_COMMIT };
    for (uint32_t i = 0; i < count; i++)
        for (unsigned write = 0; write < 2; write++)
            for (unsigned mask = write ? parts[i].written : parts[i].read; (length = next_run(&mask, &first));)
                event[++event->size] = (struct rf_event){ .addr = parts[i].granule + first,
                                                          .thread = me->index,
                                                          .size = length,
                                                          .op = write ? RF_COMMIT_WRITE : RF_COMMIT_READ };
    rf_filter_next(&me->filter);
    rf_spin_lock(&lock);
    detector->commit(event, true);
    for (uint32_t i = 0; i < count; i++)
        for (unsigned write = 0; write < 2; write++) {
            struct rf_online_access access = { .thread = me->index,
                                               .note = write ? parts[i].write_note : parts[i].read_note,
                                               .flags = write ? RF_A_WRITE : 0 };
            uintptr_t place;
            if (detector->pairs && access.note && rf_note_stack(access.note, &place, 1))
                access.site = rf_pairs_site(place);
            for (unsigned mask = write ? parts[i].written : parts[i].read; (length = next_run(&mask, &first));)
                do_access(self, me, &access, parts[i].granule + first, length);
        }
    detector->commit(event, false);
    rf_spin_unlock(&lock);
    rf_pages_back(event, bytes);
}

/* ---- memory ---- */

static void hear_unseen(void)
{
    __atomic_fetch_add(&changes, 1, __ATOMIC_RELAXED);
}

static void hear_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc)
{
    struct listener *me = listener_of(self);
    unsigned flags = RF_A_WRITE | (op == RF_FREE ? RF_A_FREE : 0);
    struct rf_online_access access = { .thread = me->index, .flags = flags };
    struct rf_online_race race;
    unsigned turns = 0;
    if (op == RF_FREE && __builtin_expect(rf_refuses, 0) && is_refused(self, me, addr, size, flags, pc))
        return;
    rf_filter_forget(&me->filter, addr, size);
    if (op == RF_FREE)
        access.note = rf_moment_note_here(self, pc, flags, size);
    rf_spin_lock(&lock);
    if (detector->pairs) {
        access.site = rf_pairs_site(rf_tap_site(self, pc));
        hear_unseen(); /* guest/online_pairs.h, 3 */
    }
    for (uintptr_t at = addr, length; at < addr + size; at += length) {
        length = RF_PAGE - at % RF_PAGE;
        if (length > addr + size - at)
            length = addr + size - at;
        while (detector->memory(&access, op, at, (unsigned)length, &race)) {
            found(self, me, &access, &race);
            if (!detector->pairs)
                break;
        }
        if (++turns % AT_ONCE == 0) {
            rf_spin_unlock(&lock);
            rf_spin_lock(&lock);
        }
    }
    rf_spin_unlock(&lock);
    if (op == RF_FREE)
        hear_access(self, addr, size < AGAIN ? size : AGAIN, flags, pc);
}

/* In one step for all, since it is under the lock. */
static void hear_copy(struct rf_self *self, uintptr_t from, uintptr_t to, size_t size, uintptr_t pc)
{
    (void)self, (void)pc;
    rf_spin_lock(&lock);
    detector->copy(from, to, size);
    rf_spin_unlock(&lock);
    hear_unseen();
}

/* ---- fork ---- */

/* The child's thread knows what the others, who are not there any more, have done. */
static void hear_fork_child(void)
{
    struct rf_self *self = rf_hot.self;
    if (!self)
        return;
    struct listener *me = listener_of(self);
    uint64_t key = rf_tap_new_key();
    rf_pairs_drop();
    for (uint32_t i = 0; i < known.count; i++)
        if (i != me->index)
            detector->sync(i, RF_SIGNAL, key);
    detector->sync(me->index, RF_WAIT, key);
}

static struct rf_tap listening = { .alone = true,
                                   .access = hear_access,
                                   .sync = hear_sync,
                                   .memory = hear_memory,
                                   .copy = hear_copy,
                                   .unseen = hear_unseen,
                                   .commit = hear_commit,
                                   .end = end,
                                   .modules = rf_tap_nothing,
                                   .fork_child = hear_fork_child,
                                   .hook = hook,
                                   .forget = hear_forget };

/* ---- the beginning, and the end ---- */

/* The number of a site is its role in the pair. */
static uint32_t class_of_site(void *unused, uint32_t site)
{
    (void)unused;
    return site;
}

static void take_pair(void *pair, const char *name, const char *value)
{
    if (rf_text_same(name, "first") || rf_text_same(name, "second"))
        ((const char **)pair)[name[0] == 's'] = value;
}

static void begin_pair(char **environment)
{
    const char *pair[2] = { "", "" }, *text = rf_environment(environment, "REDFLAG_CHASE");
    if (text)
        rf_pair_settings(text, take_pair, pair);
    if (!pair[0][0] || !pair[1][0])
        rf_die("the detector %s looks at one pair of sites: use `redflag chase -d %s --pair`", rf_options.detector,
               rf_options.detector);
    rf_pair_set(pair[0], pair[1]);
    settings.site_class = class_of_site;
}

/* `none`: nobody listens, and hooks return at once. */
static const struct rf_tap deaf = { .alone = true,
                                    .access = rf_tap_no_access,
                                    .sync = rf_tap_no_sync,
                                    .memory = rf_tap_no_memory,
                                    .end = rf_tap_no_end,
                                    .modules = rf_tap_nothing,
                                    .fork_child = rf_tap_nothing,
                                    .hooks = RF_HOOKS_RETURN };

static void read_settings(void)
{
    uint32_t usual = rf_text_same(rf_options.sample_by, "time") ? 10 : 100;
    by_time = detector->has_periods && rf_text_same(rf_options.sample_by, "time");
    by_function = rf_text_same(detector->name, "literace");
    settings.rate = rf_share_of(rf_options.rate);
    settings.period = rf_options.period ? (uint32_t)rf_options.period : usual;
    settings.burst = (uint32_t)rf_options.period;
    settings.seed = (uint64_t)rf_options.seed * UINT64_C(0xd1342543de82ef95);
}

void rf_online_begin(char **environment)
{
    settings.full = rf_text_same(rf_options.detector, "fullhb"); /* LiteHB that always tracks */
    if (rf_text_same(rf_options.detector, "none")) {
        rf_tap = &deaf;
        return;
    }
    if (rf_accu_begin() || rf_pacer_begin())
        return;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (rf_text_same(all[i]->name, settings.full ? "litehb" : rf_options.detector))
            detector = all[i];
    if (!detector)
        return;
    if (detector->wants_site)
        begin_pair(environment);
    read_settings();
    settings.transactions = rf_options.transactions[0] == 'a'   ? RF_TXN_ALL
                            : rf_options.transactions[0] == 'w' ? RF_TXN_WRITES
                                                                : RF_TXN_SHARED;
    rf_memory_begin(&known.memory);
    settings.certainty = true;
    detector->begin(&settings);
    listening.conditions = detector->conditions;
    if (detector->pairs) {
        listening.hook = hook_of_pairs;
        rf_options.suppress_equal_addresses = false; /* one address may show many pairs */
    }
    rf_tap = &listening;
}

/* guest/online_pairs.h, 2. There may still be other threads. */
void rf_online_finish(struct rf_self *self)
{
    struct rf_online_race race;
    struct rf_report_side sides[2];
    uint32_t at = 0, number;
    if (!detector || !detector->pairs || !self)
        return;
    if (rf_options.pairs[0]) {
        if (!rf_pairs_write(rf_options.pairs))
            rf_say("%s: the pairs cannot be written", rf_options.pairs);
        return;
    }
    for (;;) {
        bool mine = rf_busy_enter(self);
        rf_spin_lock(&lock);
        bool more = rf_pairs_next(&at, &race, &number);
        rf_spin_unlock(&lock);
        rf_busy_leave(self, mine);
        if (!more)
            return;
        tell(self, &race, number, sides);
    }
}

static void say_statistic(void *context, const char *name, uint64_t value)
{
    (void)context;
    rf_say("%s: %llu", name, (unsigned long long)value);
}

void rf_online_statistics(void)
{
    if (!detector || !rf_options.stats)
        return;
    detector->statistics(say_statistic, NULL);
    rf_say("bytes of the detector: %zu", detector->bytes());
}
