/* What is done about an access that would race: guest/refusal.h.
 *
 * 1. The program is asked first, if it has a handler. Then: an exception goes to the innermost redflag_try block of the thread; if
 *    there is none the race is reported and the thread ends, the whole program if it is the main one. A signal is sent to the
 *    thread and arrives before the access; so does the end by abort().
 * 2. The way to a block is libc's longjmp(). The stack of frames, signal handlers that are left, everything that was ignored, and the
 *    list of what pthread_cleanup_push() has pushed, which lies on the stack that is left, become what they were at the block.
 * 3. A block that longjmp() leaves is taken away: that of every function below the target, and those of the target's own function,
 *    where nobody can tell whether the jump stays inside. A block that ends takes all inside it away. Stack pointers are compared only
 *    within one signal handler, or outside of all: a handler may have a stack of its own. The same goes for the question to the program.
 * 4. An exception that leaves signal handlers gives the thread the mask of what the outermost of them has interrupted.
 */
#include "guest/refusal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "guest/access.h"
#include "guest/depot.h"
#include "guest/granule.h"
#include "guest/intercept.h"
#include "guest/jumps.h"
#include "guest/lanes.h"
#include "guest/memory.h"
#include "guest/options.h"
#include "guest/signals.h"
#include "guest/system.h"
#include "guest/threads.h"
#include "include/redflag.h"

RF_MODE bool rf_refuses;

/* What a thread keeps. Only the thread itself touches it. */
struct refusal {
    struct redflag_frame *innermost; /* of its blocks */
    struct __jmp_buf_tag *last;      /* where it ends */
    void *last_cleanups;
    uintptr_t asking;                /* the stack pointer when the program was asked; 0: it has answered, or left by a jump */
    struct rf_handling *asking_in;   /* ... and the signal handler that was asked in */
    struct rf_report_side now, before; /* a race that is raised late */
};

static redflag_handler *handler;
static void *handler_context;

void rf_refusal_begin(void)
{
    rf_refuses = rf_options.on_race[0] != 'r';
    if (rf_refuses && rf_options.sync[0] == 'n') /* it misses races */
        rf_die("on_race=%s needs sync=spin, cas or fib, not sync=%s", rf_options.on_race, rf_options.sync);
}

static struct refusal *refusal_of(struct rf_self *self)
{
    if (!self->refusal) {
        bool mine = rf_busy_enter(self);
        self->refusal = rf_take(sizeof(struct refusal));
        rf_busy_leave(self, mine);
    }
    return self->refusal;
}

void rf_refusal_thread_end(struct rf_self *self)
{
    if (self->refusal)
        rf_give(self->refusal, sizeof(struct refusal));
    self->refusal = NULL;
}

/* What pthread_cleanup_push() has pushed is a list that only libc knows, by its newest entry; an entry knows the one before. */
static void *present_cleanups(void)
{
    __pthread_unwind_buf_t entry;
    __pthread_register_cancel(&entry);
    __pthread_unregister_cancel(&entry);
    return entry.__pad[0];
}

static void cleanups_become(void *cleanups)
{
    __pthread_unwind_buf_t entry;
    entry.__pad[0] = cleanups;
    __pthread_unregister_cancel(&entry);
}

void rf_refusal_last(struct rf_self *self, struct __jmp_buf_tag *place)
{
    struct refusal *refusal = refusal_of(self);
    refusal->last = place;
    refusal->last_cleanups = present_cleanups();
}

/* ---- the look before the access ---- */

static bool granule_races(struct rf_step *step, uint64_t *place, unsigned mask)
{
    struct rf_slices slices;
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!rf_word_has_units(word)) {
        rf_slices_of(word, &slices);
        return rf_slices_race(&slices, mask, step);
    }
    step->stripe = rf_stripe_of(place);
    rf_spin_lock(&step->stripe->lock);
    rf_slices_of(rf_lanes_settled(place), &slices);
    bool races = rf_slices_race(&slices, mask, step);
    rf_spin_unlock(&step->stripe->lock);
    step->stripe = NULL;
    return races;
}

bool rf_would_race(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc, struct rf_found *race)
{
    struct rf_step step = { .self = self, .flags = flags };
    unsigned turns = 0;
    rf_busy_begin(self);
    for (uintptr_t end = addr + size; addr < end;) {
        unsigned offset = addr % RF_GRANULE, length = RF_GRANULE - offset;
        if (length > end - addr)
            length = (unsigned)(end - addr);
        if (granule_races(&step, rf_word(addr), ((1u << length) - 1) << offset)) {
            *race = rf_found_by(&step, addr, length, rf_moment_note_here(self, pc, flags, size));
            rf_busy_end(self);
            return true;
        }
        addr += length;
        if (++turns % 65536 == 0) { /* a sweep may be due */
            rf_busy_end(self);
            rf_busy_begin(self);
        }
    }
    rf_busy_end(self);
    return false;
}

/* ---- the race as the program sees it ---- */

static void describe_side(struct redflag_access *to, const struct rf_report_side *side)
{
    struct rf_thread_facts facts;
    uintptr_t pcs[REDFLAG_DEPTH];
    to->address = (void *)side->addr;
    to->size = side->size;
    to->kind = rf_note_flags(side->note) & (REDFLAG_WRITE | REDFLAG_ATOMIC | REDFLAG_FREE);
    to->thread = side->thread;
    to->tid = rf_thread_facts(side->thread, &facts) ? facts.tid : 0;
    to->depth = side->note ? rf_note_stack(side->note, pcs, REDFLAG_DEPTH) : 0;
    to->note = side->note;
    for (unsigned i = 0; i < to->depth; i++)
        to->pcs[i] = (void *)pcs[i];
}

static void describe(struct redflag_race *race, const struct rf_report_side *now, const struct rf_report_side *before)
{
    describe_side(&race->now, now);
    describe_side(&race->before, before);
    race->address = race->now.address;
    race->size = race->now.size;
}

static void report(const struct redflag_race *race)
{
    struct rf_self *self = rf_hot.self;
    if (!self)
        return;
    const struct redflag_access *now = &race->now, *before = &race->before;
    struct rf_report_side second = { .addr = (uintptr_t)now->address, .size = now->size, .note = now->note, .thread = now->thread };
    struct rf_report_side first = {
        .addr = (uintptr_t)before->address, .size = before->size, .note = before->note, .thread = before->thread, .previous = true
    };
    self->inside++;
    rf_report_race(&second, &first);
    self->inside--;
    if (self->pending_signals)
        rf_signals_deliver();
}

/* ---- exceptions ---- */

enum { INSIDE, IGNORE_READS, IGNORE_WRITES, IGNORE_SYNC, HANDLING, CLEANUPS };

RF_EXPORT void redflag_rt_enter(struct redflag_frame *frame)
{
    struct rf_self *self = rf_started ? rf_self() : NULL;
    frame->outer = NULL;
    if (!self)
        return;
    struct refusal *refusal = refusal_of(self);
    frame->kept[INSIDE] = self->inside;
    frame->kept[IGNORE_READS] = self->ignore_reads;
    frame->kept[IGNORE_WRITES] = self->ignore_writes;
    frame->kept[IGNORE_SYNC] = self->ignore_sync;
    frame->kept[HANDLING] = (uintptr_t)rf_handling;
    frame->kept[CLEANUPS] = (uintptr_t)present_cleanups();
    frame->outer = refusal->innermost;
    refusal->innermost = frame;
}

/* It is not there if an exception has taken it away already. */
RF_EXPORT void redflag_rt_leave(struct redflag_frame *frame)
{
    struct refusal *refusal = rf_hot.self ? rf_hot.self->refusal : NULL;
    struct redflag_frame *inside = refusal ? refusal->innermost : NULL;
    while (inside && inside != frame)
        inside = inside->outer;
    if (inside)
        refusal->innermost = frame->outer;
}

/* Is it left by a jump to `sp`, which has left the handlers that it leaves? It was at `place`, in a handler that may have ended. */
static bool is_left(uintptr_t place, const struct rf_handling *in, uintptr_t sp)
{
    if (in == rf_handling)
        return place <= sp;
    for (const struct rf_handling *outer = rf_handling; outer; outer = outer->outer)
        if (outer->outer == in)
            return false; /* it was interrupted by where the jump goes */
    return true;
}

void rf_question_left(struct rf_self *self, uintptr_t sp)
{
    struct refusal *refusal = self->refusal;
    if (refusal && refusal->asking && is_left(refusal->asking, refusal->asking_in, sp))
        refusal->asking = 0;
}

void rf_tries_left(struct rf_self *self, uintptr_t sp)
{
    struct refusal *refusal = self->refusal;
    for (struct redflag_frame *frame; refusal && (frame = refusal->innermost); refusal->innermost = frame->outer)
        if (!is_left(rf_jump_target(frame->place), (const struct rf_handling *)frame->kept[HANDLING], sp))
            break;
}

typedef void jump(struct __jmp_buf_tag *, int);

static _Noreturn void go_to(struct __jmp_buf_tag *place, void *cleanups)
{
    static void *real;
    rf_jump_leaves(place);
    cleanups_become(cleanups);
    ((jump *)rf_real(&real, "_longjmp"))(place, 1);
    __builtin_unreachable();
}

/* Clean-up functions are run on the way, by pthread_exit(), which unwinds the stack. C++ knows of no way out at a hook, and would call
 * std::terminate(): there the thread goes straight to its end. */
static _Noreturn void end_thread(struct rf_self *self, const struct redflag_race *race)
{
    struct refusal *refusal = refusal_of(self);
    rf_say("T%u ends: nobody has caught its data race on %p", self->number, race->address);
    self->inside = self->ignore_reads = self->ignore_writes = self->ignore_sync = 0;
    if (refusal->last && dlsym(RTLD_DEFAULT, "__gxx_personality_v0"))
        go_to(refusal->last, refusal->last_cleanups);
    if (self->number != 0 && !self->is_fiber)
        ((void (*)(void *))rf_find_real("pthread_exit"))(PTHREAD_CANCELED);
    rf_report_halt(rf_options.abort_on_error);
}

static void raise_exception(struct rf_self *self, const struct redflag_race *race)
{
    struct refusal *refusal = refusal_of(self);
    struct redflag_frame *frame = refusal->innermost;
    if (!frame) {
        report(race);
        end_thread(self, race);
    }
    refusal->innermost = frame->outer;
    frame->race = *race;
    const uint64_t *mask = rf_signals_mask_outside((const struct rf_handling *)frame->kept[HANDLING]);
    if (mask)
        rf_signals_restore(*mask);
    self->inside = (uint32_t)frame->kept[INSIDE];
    self->ignore_reads = (uint32_t)frame->kept[IGNORE_READS];
    self->ignore_writes = (uint32_t)frame->kept[IGNORE_WRITES];
    self->ignore_sync = (uint32_t)frame->kept[IGNORE_SYNC];
    go_to(frame->place, (void *)frame->kept[CLEANUPS]);
}

/* ---- signals ---- */

/* To this thread, now, blocked or not: as the kernel sends what the processor finds. */
static void send_signal(const struct redflag_race *race)
{
    struct {
        int signal, error, code, pad;
        const void *address; /* si_addr */
        const void *value;   /* si_value */
        char rest[96];
    } info = { .signal = rf_options.race_signal, .code = SI_QUEUE, .address = race->address, .value = race };
    uint64_t bit = UINT64_C(1) << (info.signal - 1), before = 0;
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, &before, sizeof before);
    RF_SYSCALL(SYS_rt_tgsigqueueinfo, RF_SYSCALL(SYS_getpid, 0), RF_SYSCALL(SYS_gettid, 0), info.signal, &info);
    if (before & bit)
        RF_SYSCALL(SYS_rt_sigprocmask, SIG_BLOCK, &bit, 0, sizeof bit);
}

/* ---- the door ---- */

static void begin_question(struct refusal *refusal)
{
    refusal->asking = (uintptr_t)__builtin_frame_address(0);
    refusal->asking_in = rf_handling;
}

/* What the handler itself does is not looked at. It may have left in ways that nobody told of: pthread_exit(), a C++ exception. */
static bool is_asking(struct refusal *refusal)
{
    if (refusal->asking && refusal->asking_in == rf_handling && (uintptr_t)__builtin_frame_address(0) >= refusal->asking)
        refusal->asking = 0;
    return refusal->asking != 0;
}

static enum redflag_choice ask(struct refusal *refusal, const struct redflag_race *race)
{
    redflag_handler *asked = __atomic_load_n(&handler, __ATOMIC_ACQUIRE);
    if (!asked)
        return REDFLAG_RAISE;
    begin_question(refusal);
    enum redflag_choice choice = asked(race, handler_context);
    refusal->asking = 0;
    return choice;
}

static void decide(struct rf_self *self, const struct redflag_race *race)
{
    struct refusal *refusal = refusal_of(self);
    if (is_asking(refusal))
        return;
    switch (ask(refusal, race)) {
    case REDFLAG_ALLOW:
        return;
    case REDFLAG_REPORT:
        report(race);
        return;
    case REDFLAG_RAISE:
        break;
    }
    switch (rf_options.on_race[0]) {
    case 'e':
        raise_exception(self, race);
        return;
    case 's':
        report(race);
        begin_question(refusal);
        send_signal(race);
        refusal->asking = 0;
        return;
    default:
        report(race);
        rf_report_halt(true);
    }
}

void rf_refused(struct rf_self *self, const struct rf_report_side *now, const struct rf_report_side *before)
{
    struct redflag_race race;
    self->inside++;
    bool wanted = rf_report_wanted(now, before);
    self->inside--;
    if (!wanted)
        return;
    if (self->late) {
        struct refusal *refusal = refusal_of(self);
        if (!self->has_late) {
            refusal->now = *now;
            refusal->before = *before;
            self->has_late = true;
        }
        return;
    }
    describe(&race, now, before);
    decide(self, &race);
}

void rf_raise_late(struct rf_self *self)
{
    struct refusal *refusal = self->refusal;
    struct redflag_race race;
    self->has_late = false;
    describe(&race, &refusal->now, &refusal->before);
    decide(self, &race);
}

RF_EXPORT void redflag_rt_raise(const struct redflag_race *race)
{
    struct rf_self *self = rf_started ? rf_self() : NULL;
    if (self)
        raise_exception(self, race);
}

RF_EXPORT void redflag_rt_report(const struct redflag_race *race)
{
    if (rf_started && rf_self())
        report(race);
}

RF_EXPORT void redflag_rt_on_race(redflag_handler *new, void *context)
{
    __atomic_store_n(&handler, NULL, __ATOMIC_RELEASE);
    handler_context = context;
    __atomic_store_n(&handler, new, __ATOMIC_RELEASE);
}
