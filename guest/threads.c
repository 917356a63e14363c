#include "guest/threads.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "guest/access.h"
#include "guest/accu.h"
#include "guest/facts.h"
#include "guest/atomics.h"
#include "guest/depot.h"
#include "guest/escape.h"
#include "guest/heap.h"
#include "guest/intercept.h"
#include "guest/locks.h"
#include "guest/memory.h"
#include "guest/nearby.h"
#include "guest/options.h"
#include "guest/origins.h"
#include "guest/planes.h"
#include "guest/policy.h"
#include "guest/slots.h"
#include "guest/spin.h"
#include "guest/refusal.h"
#include "guest/tap.h"
#include "guest/transactions.h"
#include "guest/vectors.h"
#include "guest/versions.h"

#define SPARE_FRAMES (64u << 10) /* bytes of frames beyond what the stack can hold: for handlers that run on stacks of their own */
#define FIBER_STACK (8u << 20)   /* a fiber's stack is not known */
#define MAIN_FRAMES (256u << 20) /* a program may raise the limit of its main stack; the kernel leaves little more below it */

enum {
    ENDED = 1,
    DETACHED = 2, /* whoever sets the second of the two gives the record back */
    EXPECTED = 4  /* the parent is going to call rf_thread_born() */
};

/* What is here, and not in guest/self.h, is nobody else's business. */
struct record {
    struct rf_self self;
    struct rf_thread_start start;
    struct rf_frame *top; /* rf_hot.top of a fiber that is not running */
    char *frames_at; /* what is mapped for its frames, and its tables */
    size_t frames_bytes;
    uintptr_t stack_low;
    size_t stack_size;
    unsigned rounds;      /* of key destructors so far */
    uint32_t flags;       /* atomic */
    struct record *next_grave;
};

static uint32_t list_lock; /* guest/threads.h, 2 */
static struct rf_self *threads;
static uint32_t live_count;

static struct record *graves; /* a stack: pushed by threads that are gone, taken whole by busy ones */

static pthread_key_t end_key;
static bool end_key_made;

/* The kernel thread's own record: also after its end, until it is joined, and whatever fiber it runs. Found by others through the
 * handle (rf_thread_by_handle), which is the address that a thread's static TLS is laid out around. */
static RF_TLS struct record *record_here;
static RF_TLS bool gone; /* this thread has ended for the guest, or is about to become known */

/* ---- clocks ---- */

void rf_clock_widen(struct rf_clock *clock, uint32_t len)
{
    uint32_t cap = clock->cap ? clock->cap : 8;
    while (cap < len)
        cap *= 2;
    uint32_t *times = rf_take(cap * sizeof *times);
    if (clock->len)
        memcpy(times, clock->times, clock->len * sizeof *times);
    rf_give(clock->times, clock->cap * sizeof *times);
    clock->times = times;
    clock->cap = cap;
}

void rf_clock_give(struct rf_clock *clock)
{
    rf_give(clock->times, clock->cap * sizeof *clock->times);
    *clock = (struct rf_clock){ 0 };
}

/* ---- the list of those that live ---- */

/* Busy when it returns, and not before: whoever holds the lock may be waiting for all busy ones. */
static void list_enter(struct rf_self *self)
{
    for (;;) {
        rf_busy_begin(self);
        if (!__atomic_exchange_n(&list_lock, 1, __ATOMIC_ACQUIRE))
            return;
        rf_busy_end(self);
        rf_yield();
    }
}

static void list_leave(struct rf_self *self)
{
    rf_spin_unlock(&list_lock);
    rf_busy_end(self);
}

static void link_record(struct rf_self *self)
{
    self->previous = NULL;
    self->next = threads;
    if (threads)
        threads->previous = self;
    threads = self;
    live_count++;
}

static void unlink_record(struct rf_self *self)
{
    if (self->next)
        self->next->previous = self->previous;
    if (self->previous)
        self->previous->next = self->next;
    else
        threads = self->next;
    live_count--;
}

void rf_threads_each(void (*f)(struct rf_self *, void *), void *context)
{
    rf_spin_lock(&list_lock);
    for (struct rf_self *self = threads, *next; self; self = next) {
        next = self->next;
        f(self, context);
    }
    rf_spin_unlock(&list_lock);
}

uint32_t rf_threads_live(void)
{
    return __atomic_load_n(&live_count, __ATOMIC_RELAXED);
}

/* ---- records ---- */

static const struct rf_options no_options;

static struct record *record_new(void)
{
    struct record *record = rf_take(sizeof *record);
    struct rf_self *self = &record->self;
    rf_memory_begin(&self->memory);
    self->engine.memory = &self->memory;
    self->engine.options = &no_options;
    self->order.engine = &self->engine;
    self->order.slot_limit = UINT32_MAX / 2;
    self->order.time_limit = RF_TIME_LIMIT;
    self->order.locks_order = self->order.volatiles_order = true; /* and tick stays 0: guest/threads.h, 4 */
    self->threads = record;
    return record;
}

/* Records of threads that were detached and have ended. The caller is busy. */
static void bury(void)
{
    struct record *grave = __atomic_exchange_n(&graves, NULL, __ATOMIC_ACQUIRE);
    for (struct record *next; grave; grave = next) {
        next = grave->next_grave;
        rf_clock_give(&grave->self.thread.clock);
        rf_give(grave, sizeof *grave);
    }
}

/* The tables of a thread lie before its frames, where pages exist when they are touched: a thread that waits needs few. */
#define TABLES ((RF_MOMENT_CACHE * sizeof(struct rf_cached_moment) + 2 * RF_SEEN * sizeof(uint64_t) + 4095) & ~(size_t)4095)

/* A thread that becomes known late is in the midst of functions, and leaves more of them than it was seen to enter: there is room for
 * frames below the first one, too. After the last one is a page that nobody can write: what lies behind is somebody else's. */
static void frames_begin(struct record *record, size_t stack, bool late)
{
    size_t bytes = (stack + SPARE_FRAMES + 4095) & ~(size_t)4095;
    char *tables = rf_reserve(TABLES + bytes);
    while (!tables && bytes > SPARE_FRAMES) { /* a limit on addresses: better a little than nothing */
        bytes = (bytes / 2 + 4095) & ~(size_t)4095;
        tables = rf_reserve(TABLES + bytes);
    }
    if (!tables)
        rf_die("out of memory: no room for the frames of a thread");
    char *frames = tables + TABLES;
    RF_SYSCALL(SYS_mprotect, frames + bytes - 4096, 4096, PROT_NONE);
    record->frames_at = tables;
    record->frames_bytes = TABLES + bytes;
    record->self.moments = (struct rf_cached_moment *)tables;
    record->self.moments_mask = RF_MOMENT_CACHE - 1;
    record->self.seen = (uint64_t *)(tables + RF_MOMENT_CACHE * sizeof *record->self.moments);
    record->self.frames = record->top = (struct rf_frame *)(frames + (late ? bytes / 2 & ~(size_t)4095 : 4096));
    record->self.frames_end = (struct rf_frame *)(frames + bytes - 4096);
}

/* All but the record itself and the clock. The caller is busy. */
static void record_empty(struct record *record)
{
    struct rf_self *self = &record->self;
    if (self->frames)
        RF_SYSCALL(SYS_munmap, record->frames_at, record->frames_bytes);
    self->frames = self->frames_end = NULL;
    rf_moments_thread_end(self);
    rf_depot_thread_end(self);
    self->seen = NULL;
    rf_nearby_end(self);
    rf_locks_thread_end(self);
    rf_accu_thread_end(self);
    rf_atomics_thread_end(self);
    rf_versions_thread_end(self);
    rf_refusal_thread_end(self);
    rf_txn_thread_end(self);
    rf_memory_donate(&self->memory);
}

struct rf_thread_start *rf_thread_start(struct rf_self *self)
{
    return &((struct record *)self->threads)->start;
}

/* The main thread's: it may grow to the limit that the process was started with. */
static void find_main_stack(struct record *record)
{
    extern void *__libc_stack_end; /* of the dynamic loader: where the kernel entered the program */
    struct rlimit limit;
    record->stack_size = 1u << 30;
    if (RF_SYSCALL(SYS_getrlimit, RLIMIT_STACK, &limit) >= 0 && limit.rlim_cur < record->stack_size)
        record->stack_size = (limit.rlim_cur + 4095) & ~(size_t)4095;
    record->stack_low = (((uintptr_t)__libc_stack_end | 4095) + 1) - record->stack_size;
}

bool rf_thread_stack(struct rf_self *self, uintptr_t *low, size_t *size)
{
    const struct record *record = self->threads;
    *low = record->stack_low;
    *size = record->stack_size;
    return record->stack_size != 0;
}

/* The calling thread's stack, as libc knows it; with its static TLS and libc's own record of it at the upper end. */
static void find_stack(struct record *record)
{
    pthread_attr_t attributes;
    void *low;
    record->self.inside++; /* it calls malloc() */
    if (!pthread_getattr_np(pthread_self(), &attributes)) {
        if (!pthread_attr_getstack(&attributes, &low, &record->stack_size))
            record->stack_low = (uintptr_t)low;
        pthread_attr_destroy(&attributes);
    }
    record->self.inside--;
}

/* The destructors of all keys are run up to PTHREAD_DESTRUCTOR_ITERATIONS times, in the order of the keys' numbers, and C++'s
 * thread_local objects are destroyed before. Ours comes last of the first 32, which are those that libc keeps without allocating
 * memory: a key beyond them would mean a block for each thread, which a fork() in the wrong instant leaves freed but not forgotten.
 * A key of the program beyond ours whose destructor sets it again until the last round ends after the thread's end, unseen. */
#define KEYS_AT_HAND 32

static void key_destroyed(void *argument)
{
    struct record *record = argument;
    if (++record->rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        record->self.inside++;
        pthread_setspecific(end_key, record);
        record->self.inside--;
    } else {
        rf_thread_end(&record->self);
    }
}

static void make_end_key(void)
{
    pthread_key_t keys[KEYS_AT_HAND];
    unsigned count = 0;
    while (count < KEYS_AT_HAND && !pthread_key_create(&keys[count], key_destroyed)) {
        count++;
        if (keys[count - 1] >= KEYS_AT_HAND - 1)
            break;
    }
    if (!count)
        rf_die("cannot start: all of the %d keys of pthread_key_create() are in use", PTHREAD_KEYS_MAX);
    end_key = keys[count - 1];
    end_key_made = true;
    while (--count)
        pthread_key_delete(keys[count - 1]);
}

/* The first steps of a kernel thread under its record. */
static void run_as(struct record *record)
{
    struct rf_self *self = &record->self;
    self->tid = (int32_t)RF_SYSCALL(SYS_gettid, 0);
    record_here = record;
    rf_hot.top = record->top;
    rf_hot.self = self;
    rf_hot.seen = self->seen;
    rf_epoch_begin(self);
    if (end_key_made) {
        self->inside++;
        pthread_setspecific(end_key, record);
        self->inside--;
    }
}

/* Signals but those of faults, which the planes may need (guest/planes.h, 2). Returns the old mask. */
static uint64_t block_signals(void)
{
    uint64_t all = ~(UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1)), old = 0;
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof all);
    return old;
}

/* Who made this thread, libc's timers or a raw clone, is not known; so all that happened before it came is taken to come before it.
 * That hides races between it and the past, and until a thread's next release also those with what it does in the same epoch; it
 * never makes one up. */
static void join_past(struct rf_self *other, void *self)
{
    struct rf_thread *thread = &((struct rf_self *)self)->thread;
    if (other == self)
        return;
    if (rf_tap)
        rf_tap_past(other);
    rf_clock_room(&thread->clock, other->thread.clock.len);
    rf_clock_join(&thread->clock, NULL, &other->thread.clock);
}

/* The world is stopped. */
static void learn_past(struct rf_self *self)
{
    rf_threads_each(join_past, self);
    rf_slots_past(&self->thread);
    rf_version_ends(self);
    if (rf_tap)
        rf_tap_attached(self);
}

void rf_thread_learn_past(struct rf_self *self)
{
    rf_world_stop(self);
    learn_past(self);
    rf_world_go(self);
}

struct rf_self *rf_self_attach(void)
{
    if (!rf_started || gone)
        return NULL;
    gone = true; /* what is called from here must not come here */
    struct rf_vectors vectors;
    rf_vectors_keep(&vectors);
    /* A thread without a record cannot be busy; so no signal handler may run now, and fork() takes the locks themselves. */
    uint64_t mask = block_signals();
    struct record *record = record_new();
    struct rf_self *self = &record->self;
    bool first = !end_key_made;
    if (!first) /* a sweep must not take the slot's moments while they change hands */
        rf_world_stop(self);
    rf_spin_lock(&rf_slots_lock);
    self->number = self->thread.index = rf_facts_new(self);
    rf_slot_take(self, NULL);
    rf_spin_unlock(&rf_slots_lock);
    record->flags = DETACHED; /* nobody is going to tell us of a join */
    rf_spin_lock(&list_lock);
    link_record(self);
    rf_spin_unlock(&list_lock);
    if (first) {
        find_main_stack(record);
        frames_begin(record, record->stack_size < MAIN_FRAMES && !rf_planes_lazy() ? MAIN_FRAMES : record->stack_size, false);
        make_end_key();
        rf_fork_begin();
    } else {
        learn_past(self);
        rf_world_go(self);
        frames_begin(record, FIBER_STACK, true);
    }
    gone = false;
    run_as(record);
    rf_vectors_back(&vectors);
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
    return self;
}

struct rf_self *rf_thread_created(struct rf_self *parent, uint32_t creation, size_t stack_size)
{
    list_enter(parent);
    bury();
    struct record *record = record_new();
    struct rf_self *self = &record->self;
    self->parent = parent->number;
    self->creation = creation;
    if (parent->system) { /* a helper of the runtime system */
        self->system = 1;
        if (rf_system_is_ignored(self))
            self->ignore_reads = self->ignore_writes = self->ignore_sync = 1;
    }
    rf_spin_lock(&rf_slots_lock);
    self->number = self->thread.index = rf_facts_new(self);
    rf_slot_take(self, &parent->thread.clock);
    rf_spin_unlock(&rf_slots_lock);
    /* A reused slot: the parent knows it up to its last owner's end, which is where the child's time begins. */
    rf_clock_room(&self->thread.clock, parent->thread.clock.len);
    rf_clock_join(&self->thread.clock, &self->memory, &parent->thread.clock);
    self->epoch_time = self->thread.since;
    if (stack_size)
        frames_begin(record, stack_size, false);
    link_record(self);
    rf_tap_sync(parent, RF_FORK, self->number, 0);
    rf_epoch_begin(parent);
    list_leave(parent);
    return self;
}

void rf_thread_unborn(struct rf_self *parent, struct rf_self *child)
{
    struct record *record = child->threads;
    list_enter(parent);
    unlink_record(child);
    rf_spin_lock(&rf_slots_lock);
    rf_facts_end(child, RF_F_UNBORN);
    rf_slot_leave(child, false);
    rf_spin_unlock(&rf_slots_lock);
    rf_slot_reclaim(child->thread.slot); /* no history can name it */
    record_empty(record);
    rf_clock_give(&child->thread.clock);
    rf_give(record, sizeof *record);
    list_leave(parent);
}

void rf_thread_begin(struct rf_self *self)
{
    struct record *record = self->threads;
    gone = true;
    find_stack(record);
    if (!self->frames)
        frames_begin(record, record->stack_size, false);
    gone = false;
    run_as(record);
    /* Stacks are used again by libc without unmapping them; what the last thread did there is no race. */
    rf_range_clear(record->stack_low, record->stack_size);
}

/* The end of a thread, or of a fiber, for everybody else. The caller has the list. */
static void leave(struct record *record)
{
    if (rf_tap)
        rf_tap_ends(&record->self);
    unlink_record(&record->self);
    rf_spin_lock(&rf_slots_lock);
    bool left = __atomic_load_n(&record->flags, __ATOMIC_RELAXED) & DETACHED || record->self.is_fiber;
    rf_facts_end(&record->self, left ? RF_F_LEFT : RF_F_NOT_JOINED);
    rf_slot_leave(&record->self, false);
    rf_spin_unlock(&rf_slots_lock);
}

/* The thread's memory must not go while its parent may write there: a thread that detaches itself may be at its end before
 * pthread_create() has come back. The parent waits for nobody on its way, but may have to wait for this processor. */
static void wait_for_birth(const struct record *record)
{
    const struct timespec moment = { .tv_nsec = 100000 };
    for (unsigned turns = 0; __atomic_load_n(&record->flags, __ATOMIC_ACQUIRE) & EXPECTED; turns++) {
        if (turns < 100)
            rf_yield();
        else
            RF_SYSCALL(SYS_nanosleep, &moment, NULL);
    }
}

void rf_thread_end(struct rf_self *self)
{
    struct record *record = self->threads;
    if (self->is_fiber) { /* by another thread */
        struct rf_self *caller = rf_self();
        if (!caller)
            return; /* the guest ends, and the fiber with it */
        list_enter(caller);
        leave(record);
        record_empty(record);
        rf_clock_give(&self->thread.clock);
        rf_give(record, sizeof *record);
        list_leave(caller);
        return;
    }
    if (rf_hot.self != self) /* it ends while it runs a fiber */
        rf_thread_switch(self);
    rf_locks_abandon(self);
    rf_heap_thread_end(self);
    block_signals(); /* for good: libc does the same soon, and the thread ends before they are let through again */
    if (self->number) /* what lies on the main thread's stack outlives it */
        rf_range_clear(record->stack_low, record->stack_size);
    gone = true;
    wait_for_birth(record);
    list_enter(self);
    leave(record);
    rf_hot = (struct rf_hot)RF_HOT_NONE;
    record_empty(record);
    list_leave(self);
    if (__atomic_fetch_or(&record->flags, ENDED, __ATOMIC_ACQ_REL) & DETACHED) {
        record_here = NULL;
        struct record *head = __atomic_load_n(&graves, __ATOMIC_RELAXED);
        do
            record->next_grave = head;
        while (!__atomic_compare_exchange_n(&graves, &head, record, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    }
}

/* The child has ended, whoever calls this; nobody else looks at its record. */
static void put_away(struct rf_self *self, struct rf_self *child)
{
    rf_busy_begin(self);
    rf_spin_lock(&rf_slots_lock);
    rf_facts_become(child->number, RF_F_JOINED);
    rf_spin_unlock(&rf_slots_lock);
    rf_clock_give(&child->thread.clock);
    rf_give(child->threads, sizeof(struct record));
    rf_busy_end(self);
}

void rf_thread_joined(struct rf_self *self, struct rf_self *child)
{
    struct record *record = child->threads;
    uint32_t slot = child->thread.slot;
    /* libc lets the joiner go when the kernel says that the thread is no more: its end is in the past, and seen. A thread that
     * left without its destructors being run (a raw exit) is still listed: it has left now. */
    if (!(__atomic_load_n(&record->flags, __ATOMIC_ACQUIRE) & ENDED)) {
        list_enter(self);
        leave(record);
        record_empty(record);
        list_leave(self);
    }
    rf_busy_begin(self);
    rf_tap_sync(self, RF_JOIN, child->number, 0);
    rf_clock_room(&self->thread.clock, child->thread.clock.len);
    rf_clock_receive(self, &child->thread.clock, 0);
    rf_spin_lock(&rf_slots_lock);
    rf_slot_joined(slot);
    rf_spin_unlock(&rf_slots_lock);
    rf_busy_end(self);
    put_away(self, child);
}

void rf_thread_detached(struct rf_self *self, struct rf_self *child)
{
    struct record *record = child->threads;
    rf_busy_begin(self);
    rf_spin_lock(&rf_slots_lock); /* leave() looks at the flags under it, too: one of the two sees the other */
    rf_facts_left(child->number);
    bool ended = __atomic_fetch_or(&record->flags, DETACHED, __ATOMIC_ACQ_REL) & ENDED;
    rf_spin_unlock(&rf_slots_lock);
    rf_busy_end(self);
    if (ended)
        put_away(self, child);
}

void rf_thread_switch(struct rf_self *to)
{
    rf_origin_escapes(RF_ORIGIN_STACK); /* it may be memory like any other, whose publication nobody sees */
    struct rf_self *from = rf_hot.self;
    struct record *record = to->threads;
    if (from) {
        if (__builtin_expect(rf_escape_leaves != NULL, 0))
            rf_escape_switched(from);
        ((struct record *)from->threads)->top = rf_hot.top;
        from->stamp = rf_hot.stamp;
        rf_park_here(from);
    }
    if (rf_tap && from && record_here)
        rf_tap_switch(from, to, record_here->self.number);
    if (!to->frames)
        frames_begin(record, FIBER_STACK, false);
    rf_hot.span = 0;
    rf_escape_look_closer();
    rf_hot.top = record->top;
    rf_hot.self = to;
    rf_hot.stamp = to->stamp; /* of its tables; the epoch gives another */
    rf_hot.seen = to->seen;
    rf_epoch_begin(to);
}

struct rf_self *rf_thread_kernel(void)
{
    return record_here ? &record_here->self : NULL;
}

static struct record **place_of(unsigned long pthread)
{
    uintptr_t here;
    __asm__("mov %%fs:0, %0" : "=r"(here));
    return (struct record **)(pthread + ((uintptr_t)&record_here - here));
}

void rf_thread_expected(struct rf_self *child)
{
    struct record *record = child->threads;
    __atomic_fetch_or(&record->flags, EXPECTED, __ATOMIC_RELAXED);
}

void rf_thread_born(struct rf_self *child, unsigned long pthread)
{
    struct record *record = child->threads;
    __atomic_store_n(place_of(pthread), record, __ATOMIC_RELEASE);
    __atomic_fetch_and(&record->flags, ~(uint32_t)EXPECTED, __ATOMIC_RELEASE);
}

struct rf_self *rf_thread_by_handle(unsigned long pthread)
{
    struct record *record = NULL;
    /* Libc lets others know the handle before the child, or its parent, has entered the record: a moment. A thread that was not
     * made through us, and was never seen, has none. */
    for (unsigned turns = 0; !(record = __atomic_load_n(place_of(pthread), __ATOMIC_ACQUIRE)) && turns < 1000; turns++)
        rf_yield();
    return record ? &record->self : NULL;
}

void rf_thread_name(struct rf_self *child, const char *name)
{
    size_t i = 0;
    for (; name[i] && i + 1 < sizeof child->name; i++)
        child->name[i] = name[i];
    child->name[i] = 0;
}

/* ---- fork ---- */

void rf_threads_fork_before(void)
{
    rf_spin_lock(&list_lock);
    rf_spin_lock(&rf_slots_lock);
}

/* What other threads of the parent did came before the child, which got a copy of the memory: its thread knows it all. Their stacks
 * stay as they are: the program may have pointers there. */
void rf_threads_fork_after(struct rf_self *self, bool child)
{
    if (child && self) {
        for (struct rf_self *other = threads, *next; other; other = next) {
            next = other->next;
            struct record *record = other->threads;
            if (other == self || other->is_fiber || record == record_here)
                continue;
            unlink_record(other);
            rf_facts_end(other, RF_F_LEFT);
            rf_slot_leave(other, false);
            record_empty(record);
            rf_clock_give(&other->thread.clock);
            __atomic_fetch_or(&record->flags, ENDED, __ATOMIC_RELAXED); /* the record stays: a handle may still lead to it */
        }
        if (record_here) /* nobody is left who could */
            __atomic_fetch_and(&record_here->flags, ~(uint32_t)EXPECTED, __ATOMIC_RELAXED);
        rf_facts_all_left();
        rf_slots_inherit(&self->thread);
        rf_version_ends(self);
        self->tid = (int32_t)RF_SYSCALL(SYS_gettid, 0);
    }
    rf_spin_unlock(&rf_slots_lock);
    rf_spin_unlock(&list_lock);
}
