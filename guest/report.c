/* See guest/report.h.
 *
 * 1. `tables` (what was reported already) has a lock for a few instructions, held by busy threads (guest/spin.h); `making` is
 *    held while a report is made, which takes long: waiters sleep, and a repetition never waits for it.
 * 2. A pair is put into the table before its report is made, so that of several threads that find it one reports.
 * 3. What interrupts a thread that makes a report, a signal handler, makes none itself: it is counted.
 */
#include "guest/report.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/access.h"
#include "guest/annotations.h"
#include "guest/fd.h"
#include "guest/heap.h"
#include "guest/intercept.h"
#include "guest/java.h"
#include "guest/locks.h"
#include "guest/options.h"
#include "guest/report_parts.h"
#include "guest/spin.h"
#include "guest/threads.h"
#include "guest/uninstrumented.h"

_Static_assert((int)RF_RA_WRITE == RF_A_WRITE && (int)RF_RA_ATOMIC == RF_A_ATOMIC && (int)RF_RA_VPTR == RF_A_VPTR &&
                   (int)RF_RA_FREE == RF_A_FREE && (int)RF_RA_EXTERNAL == RF_A_EXTERNAL &&
                   (int)RF_RA_VOLATILE == RF_A_VOLATILE,
               "the flags of accesses are those of records");

/* ---- what was reported ---- */

/* A set of 64-bit keys, 0 is none. It grows and never shrinks. */
struct keys {
    uint64_t *list;
    size_t count, cap;
};

static struct {
    uint32_t lock;
    struct keys notes;     /* pairs of notes: a repetition is seen without looking at its stacks */
    struct keys stacks;    /* pairs of stacks */
    struct keys addresses; /* where something was shown, with the allocation that it is part of */
} tables;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b * 0x9e3779b97f4a7c15ull)) + 0x632be59bd9b4e019ull;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    x = (x ^ (x >> 29)) * 0xd6e8feb86659fd93ull;
    return x ^ (x >> 32);
}

static size_t place_of(const struct keys *keys, uint64_t key)
{
    size_t i = key & (keys->cap - 1);
    while (keys->list[i] && keys->list[i] != key)
        i = (i + 1) & (keys->cap - 1);
    return i;
}

static bool has_key(const struct keys *keys, uint64_t key)
{
    return keys->cap && keys->list[place_of(keys, key | 1)];
}

static void add_key(struct keys *keys, uint64_t key)
{
    key |= 1; /* never 0 */
    if (2 * (keys->count + 1) > keys->cap) {
        struct keys old = *keys;
        keys->cap = old.cap ? 2 * old.cap : 512;
        keys->list = rf_pages(keys->cap * sizeof *keys->list);
        for (size_t i = 0; i < old.cap; i++)
            if (old.list[i])
                keys->list[place_of(keys, old.list[i])] = old.list[i];
        if (old.cap)
            rf_pages_back(old.list, old.cap * sizeof *old.list);
    }
    size_t i = place_of(keys, key);
    keys->count += !keys->list[i];
    keys->list[i] = key;
}

/* Locks the tables; returns what unlock_tables() must be told. */
static bool lock_tables(struct rf_self *self)
{
    bool mine = rf_busy_enter(self);
    rf_spin_lock(&tables.lock);
    return mine;
}

static void unlock_tables(struct rf_self *self, bool mine)
{
    rf_spin_unlock(&tables.lock);
    rf_busy_leave(self, mine);
}

static uint64_t stack_key(uint32_t note)
{
    uintptr_t pcs[64]; /* two deep recursions that differ only further out are one to a reader */
    unsigned count = note ? rf_note_stack(note, pcs, 64) : 0;
    uint64_t key = 1;
    for (unsigned i = 0; i < count; i++)
        key = mix(key, pcs[i]);
    return key;
}

static uint64_t pair_key(uint64_t kind, uint64_t a, uint64_t b)
{
    return mix(kind, a < b ? mix(a, b) : mix(b, a)); /* the same pair in either order */
}

/* Is this pair new? Then it is not any more. */
static bool is_new(struct rf_self *self, uint64_t kind, uint32_t a, uint32_t b)
{
    uint64_t by_notes = pair_key(kind, a, b);
    bool mine = lock_tables(self), known = has_key(&tables.notes, by_notes);
    if (known)
        RF_COUNT(repeated);
    unlock_tables(self, mine);
    if (known)
        return false;
    uint64_t by_stacks = pair_key(kind, stack_key(a), stack_key(b));
    mine = lock_tables(self);
    known = rf_options.suppress_equal_stacks && has_key(&tables.stacks, by_stacks);
    if (known)
        RF_COUNT(repeated);
    if (rf_options.suppress_equal_stacks)
        add_key(&tables.notes, by_notes);
    add_key(&tables.stacks, by_stacks);
    unlock_tables(self, mine);
    return !known;
}

/* ---- one at a time ---- */

static struct {
    uint32_t state; /* 0 free, 1 taken, 2 taken and somebody waits */
    struct rf_self *owner;
} making;

static bool begin_making(struct rf_self *self)
{
    if (__atomic_load_n(&making.owner, __ATOMIC_RELAXED) == self) { /* invariant 3: only we write ourselves there */
        RF_COUNT(interrupted);
        return false;
    }
    uint32_t was = 0;
    if (!__atomic_compare_exchange_n(&making.state, &was, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        while (__atomic_exchange_n(&making.state, 2, __ATOMIC_ACQUIRE))
            rf_futex_wait(&making.state, 2);
    __atomic_store_n(&making.owner, self, __ATOMIC_RELAXED);
    self->inside++;
    return true;
}

static void end_making(struct rf_self *self)
{
    rf_scratch_free();
    self->inside--;
    __atomic_store_n(&making.owner, NULL, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&making.state, 0, __ATOMIC_RELEASE) == 2)
        rf_futex_wake(&making.state);
}

/* ---- filling a record ---- */

static struct rf_stack stack_of(uint32_t note)
{
    struct rf_stack stack = { 0 };
    if (!note)
        return stack;
    uintptr_t *pcs = rf_scratch(RF_DEEPEST * sizeof *pcs);
    stack.count = rf_note_stack(note, pcs, RF_DEEPEST);
    stack.pcs = rf_scratch(stack.count * sizeof *stack.pcs + 1);
    for (uint32_t i = 0; i < stack.count; i++)
        stack.pcs[i] = pcs[i];
    return stack;
}

static bool knows_thread(const struct rf_record *record, uint32_t number)
{
    for (uint32_t i = 0; i < record->thread_count; i++)
        if (record->threads[i].number == number)
            return true;
    return false;
}

static void add_thread(struct rf_record *record, uint32_t number)
{
    struct rf_thread_facts facts;
    if (knows_thread(record, number) || !rf_thread_facts(number, &facts))
        return;
    if (record->thread_count == record->thread_cap) {
        uint32_t cap = record->thread_cap ? 2 * record->thread_cap : 16;
        struct rf_rec_thread *larger = rf_scratch(cap * sizeof *larger);
        for (uint32_t i = 0; i < record->thread_count; i++)
            larger[i] = record->threads[i];
        record->threads = larger;
        record->thread_cap = cap;
    }
    struct rf_rec_thread *thread = &record->threads[record->thread_count++];
    *thread = (struct rf_rec_thread){
        .number = number, .parent = facts.parent, .tid = facts.tid, .stack = stack_of(facts.creation)
    };
    thread->flags = (facts.main ? RF_RT_MAIN : 0) | (facts.running ? RF_RT_RUNNING : 0) | (facts.is_fiber ? RF_RT_FIBER : 0);
    for (unsigned i = 0; i < sizeof facts.name && facts.name[i]; i++)
        thread->name[i] = facts.name[i];
    /* Who created it, up to the main thread; ThreadSanitizer's reports name only those that took part. */
    if (!facts.main && rf_options.report_style[0] != 't')
        add_thread(record, facts.parent);
}

static void add_lock(struct rf_record *record, uint32_t number, uintptr_t addr, uint32_t created, uint32_t taken)
{
    for (uint32_t i = 0; i < record->lock_count; i++)
        if (record->locks[i].number == number)
            return;
    if (record->lock_count == record->lock_cap) {
        uint32_t cap = record->lock_cap ? 2 * record->lock_cap : 16;
        struct rf_rec_lock *larger = rf_scratch(cap * sizeof *larger);
        for (uint32_t i = 0; i < record->lock_count; i++)
            larger[i] = record->locks[i];
        record->locks = larger;
        record->lock_cap = cap;
    }
    record->locks[record->lock_count++] =
        (struct rf_rec_lock){ .number = number, .addr = addr, .created = stack_of(created), .taken = stack_of(taken) };
}

#define MOST_LOCKS 256u /* that one thread holds at once */

static void add_access(struct rf_record *record, const struct rf_report_side *side)
{
    static struct rf_held_lock held[MOST_LOCKS]; /* under `making` */
    struct rf_rec_access *access = &record->accesses[record->access_count++];
    unsigned count = rf_locks_of(rf_note_locks(side->note), held, MOST_LOCKS);
    if (count > MOST_LOCKS)
        count = MOST_LOCKS;
    *access = (struct rf_rec_access){ .addr = side->addr,
                                      .size = side->size,
                                      .flags = rf_note_flags(side->note) & 63,
                                      .thread = side->thread,
                                      .previous = side->previous,
                                      .stack = stack_of(side->note) };
    access->held = rf_scratch(count * sizeof *access->held + 1);
    access->held_count = count;
    for (unsigned i = 0; i < count; i++) {
        access->held[i] = (struct rf_rec_held){ held[i].number, held[i].read };
        add_lock(record, held[i].number, held[i].addr, held[i].created, held[i].taken);
    }
    add_thread(record, side->thread);
}

/* ---- what an address is ---- */

static uintptr_t main_thread_pointer; /* written once, at the start */

struct search {
    uintptr_t addr;
    struct rf_rec_location *location;
};

/* libc's record of a thread and the static thread-local variables below it. */
static size_t thread_local_size(void)
{
    static size_t known;
    if (!known) {
        size_t size = 0, align = 0;
        void (*ask)(size_t *, size_t *);
        *(void **)&ask = dlsym(RTLD_DEFAULT, "_dl_get_tls_static_info");
        if (ask)
            ask(&size, &align);
        known = size ? size : 4096;
    }
    return known;
}

static void look_at_stack(struct rf_self *other, void *context)
{
    struct search *search = context;
    uintptr_t low, top;
    size_t size;
    if (search->location->kind != RF_AT_NOWHERE)
        return;
    size_t locals = thread_local_size();
    bool tls;
    if (other->number == 0 && main_thread_pointer && search->addr - (main_thread_pointer - locals) < locals + 4096) {
        tls = true;
    } else {
        if (!rf_thread_stack(other, &low, &size) || search->addr - low >= size)
            return;
        top = low + size;
        tls = other->number != 0 && top - search->addr <= locals;
    }
    search->location->kind = tls ? RF_AT_TLS : RF_AT_STACK;
    search->location->addr = search->addr;
    search->location->thread = other->number;
}

static void find_location(struct rf_self *self, struct rf_record *record, uintptr_t addr)
{
    struct rf_rec_location *location = &record->location;
    struct rf_block block;
    uint32_t note;
    int fd;
    if (rf_fd_location(addr, &fd, &note)) {
        *location = (struct rf_rec_location){ .kind = RF_AT_FD, .fd = fd, .stack = stack_of(note) };
        return;
    }
    if (rf_java_block(addr, &block) || rf_heap_block(addr, &block)) {
        *location = (struct rf_rec_location){ .kind = block.freed ? RF_AT_FREED : RF_AT_HEAP,
                                              .addr = block.addr,
                                              .size = block.size,
                                              .thread = block.thread,
                                              .stack = stack_of(block.note) };
        const char *type = rf_external_type(self, addr, NULL);
        for (unsigned i = 0; type && type[i] && i < sizeof location->text - 1; i++)
            location->text[i] = type[i];
        add_thread(record, block.thread);
        return;
    }
    struct search search = { addr, location };
    thread_local_size(); /* not with the world stopped */
    if (!self->busy) {
        rf_world_stop(self);
        rf_threads_each(look_at_stack, &search);
        rf_world_go(self);
    }
    if (location->kind != RF_AT_NOWHERE)
        add_thread(record, location->thread);
    else if (rf_module_at(addr))
        *location = (struct rf_rec_location){ .kind = RF_AT_GLOBAL, .addr = addr };
}

/* ---- beginning ---- */

/* The beginning of every report; NULL: not now. */
static struct rf_self *begin(struct rf_record *record, enum rf_kind kind)
{
    struct rf_self *self = rf_hot.self;
    if (!rf_options.report_bugs || !self || !begin_making(self))
        return NULL;
    uint32_t count;
    *record = (struct rf_record){ .kind = kind };
    rf_modules_now(&count);
    return self;
}

/* ---- the kinds ---- */

static enum rf_kind race_kind(unsigned now, unsigned before)
{
    if (before & RF_A_FREE)
        return (now | before) & RF_A_VPTR ? RF_K_VPTR_FREE_RACE : RF_K_FREE_RACE;
    if ((now | before) & RF_A_VPTR)
        return RF_K_VPTR_RACE;
    return (now | before) & RF_A_EXTERNAL ? RF_K_EXTERNAL_RACE : RF_K_RACE;
}

/* The address, of this allocation: memory that is used again is another place. */
static uint64_t address_key(uintptr_t addr)
{
    struct rf_block block;
    return mix(addr >> 3, rf_heap_block(addr, &block) ? block.note : 0);
}

bool rf_report_wanted(const struct rf_report_side *now, const struct rf_report_side *before)
{
    unsigned flags = rf_note_flags(now->note) | (before->note ? rf_note_flags(before->note) : 0);
    if (rf_benign(now->addr, now->size) || (!rf_options.report_atomic_races && flags & RF_A_ATOMIC))
        return false;
    return !rf_options.ignore_noninstrumented_modules ||
           (!rf_from_uninstrumented(now->note) && !(before->note && rf_from_uninstrumented(before->note)));
}

void rf_report_race(const struct rf_report_side *now, const struct rf_report_side *before)
{
    struct rf_self *self = rf_hot.self;
    struct rf_record record;
    struct rf_rec_access accesses[2];
    unsigned now_flags = rf_note_flags(now->note), before_flags = before->note ? rf_note_flags(before->note) : 0;
    if (!self || !rf_options.report_bugs || !rf_report_wanted(now, before))
        return;
    enum rf_kind kind = race_kind(now_flags, before_flags);
    if (!is_new(self, kind, now->note, before->note))
        return;
    uint64_t address = address_key(now->addr);
    if (rf_options.suppress_equal_addresses) {
        bool mine = lock_tables(self), known = has_key(&tables.addresses, address);
        if (known)
            RF_COUNT(same_address);
        unlock_tables(self, mine);
        if (known)
            return;
    }
    if (!begin(&record, kind))
        return;
    record.accesses = accesses;
    record.predicted = now->predicted;
    add_access(&record, now);
    if (before->note) /* a detector that goes by locks alone may not know the other side */
        add_access(&record, before);
    struct rf_block block;
    if (!now->past && before_flags & RF_A_FREE && rf_heap_block(now->addr, &block) && block.freed) { /* all of the block was freed */
        accesses[1].addr = block.addr;
        accesses[1].size = block.size;
    }
    if (!now->past)
        find_location(self, &record, now->addr);
    if (rf_report_show(&record)) {
        bool mine = lock_tables(self);
        add_key(&tables.addresses, address);
        unlock_tables(self, mine);
    }
    end_making(self);
}

_Noreturn void rf_report_halt(bool aborts)
{
    struct rf_self *self = rf_hot.self;
    if (self)
        begin_making(self); /* of several threads the first one ends all */
    rf_halt(aborts);
}

void rf_report_mutex(enum rf_mutex_bug bug, uintptr_t mutex, uint32_t created, uint32_t note, uint32_t taken)
{
    static const enum rf_kind kinds[] = {
        [RF_MUTEX_DESTROY_LOCKED] = RF_K_DESTROY_LOCKED,   [RF_MUTEX_DOUBLE_LOCK] = RF_K_DOUBLE_LOCK,
        [RF_MUTEX_BAD_UNLOCK] = RF_K_BAD_UNLOCK,           [RF_MUTEX_BAD_READ_LOCK] = RF_K_BAD_READ_LOCK,
        [RF_MUTEX_BAD_READ_UNLOCK] = RF_K_BAD_READ_UNLOCK, [RF_MUTEX_INVALID] = RF_K_INVALID_MUTEX,
    };
    struct rf_record record;
    struct rf_stack stacks[2];
    struct rf_self *self = rf_hot.self;
    if (!self || !is_new(self, kinds[bug], note, taken) || !begin(&record, kinds[bug]))
        return;
    const struct rf_object *object = rf_object_look(mutex);
    record.stacks = stacks;
    stacks[record.stack_count++] = stack_of(note);
    if (taken)
        stacks[record.stack_count++] = stack_of(taken);
    add_lock(&record, object && object->lock_number ? object->lock_number : 1, mutex, created, 0);
    find_location(self, &record, mutex);
    rf_report_show(&record);
    end_making(self);
}

void rf_report_thread_leak(uint32_t thread, uint32_t count)
{
    struct rf_record record;
    struct rf_self *self = begin(&record, RF_K_THREAD_LEAK);
    if (!self)
        return;
    add_thread(&record, thread);
    record.thread_count = record.thread_count ? 1 : 0; /* not its parents */
    record.more = count > 1 ? count - 1 : 0;
    rf_report_show(&record);
    end_making(self);
}

void rf_report_lock_order(unsigned count, const uintptr_t *locks, const uint32_t *created, const uint32_t *held,
                          const uint32_t *wanted, const uint32_t *threads)
{
    struct rf_record record;
    struct rf_self *self = begin(&record, RF_K_LOCK_ORDER);
    if (!self)
        return;
    uint32_t *numbers = rf_scratch(count * sizeof *numbers + 1);
    for (unsigned i = 0; i < count; i++) {
        const struct rf_object *object = rf_object_look(locks[i]);
        numbers[i] = object && object->lock_number ? object->lock_number : 1000000 + i;
        add_lock(&record, numbers[i], locks[i], created[i], 0);
    }
    record.steps = rf_scratch(count * sizeof *record.steps + 1);
    record.step_count = count;
    for (unsigned i = 0; i < count; i++) {
        unsigned from = (i + 1) % count; /* the step that was just taken, which is the first of the list, is shown last */
        record.steps[i] = (struct rf_rec_step){ .held = numbers[from],
                                                .wanted = numbers[(from + 1) % count],
                                                .thread = threads[from],
                                                .wanted_at = stack_of(wanted[from]),
                                                .held_at = stack_of(held[from]) };
        add_thread(&record, threads[from]);
    }
    rf_report_show(&record);
    end_making(self);
}

static void report_signal(enum rf_kind kind, int signal, uint32_t note)
{
    struct rf_record record;
    struct rf_stack stack;
    struct rf_self *self = rf_hot.self;
    if (!self || !is_new(self, kind, note, 0) || !begin(&record, kind))
        return;
    stack = stack_of(note);
    record.stacks = &stack;
    record.stack_count = 1;
    record.signal = signal;
    rf_report_show(&record);
    end_making(self);
}

void rf_report_signal_unsafe(const char *function, int signal, uint32_t note)
{
    (void)function; /* the stack's first frame names it */
    report_signal(RF_K_SIGNAL_UNSAFE, signal, note);
}

void rf_report_errno_spoiled(int signal, uint32_t note)
{
    report_signal(RF_K_ERRNO, signal, note);
}

/* ---- begin and end ---- */

static __attribute__((constructor(102))) void begin_reports(void)
{
    main_thread_pointer = (uintptr_t)__builtin_thread_pointer();
    if (rf_started)
        rf_report_begin();
}

int rf_report_finish(int status)
{
    struct rf_self *self = rf_hot.self;
    if (!self || !begin_making(self))
        return status;
    status = rf_report_end(status);
    end_making(self);
    return status;
}

/* Other threads are gone, and with them what they had locked. What was reported stays so: it was the same program. */
void rf_report_fork_child(void)
{
    making.state = 0;
    making.owner = NULL;
    tables.lock = 0;
    rf_report_counts = (struct rf_report_counts){ 0 };
    rf_reporter_fork_child();
}

/* ---- where to ---- */

RF_EXPORT void __sanitizer_set_report_path(const char *path);
void __sanitizer_set_report_path(const char *path)
{
    static char copy[4096];
    struct rf_self *self = rf_hot.self;
    if (!path || !self || !begin_making(self))
        return;
    rf_format(copy, sizeof copy, "%s", path);
    rf_options.log_path = copy;
    rf_reporter_forget(); /* the next one is told */
    end_making(self);
}
