/* The program's side of `redflag record`: every event of the tap goes into memory that the recorder shares (core/recording.h).
 *
 * 1. A thread writes into a block of its own, without locks. Only the ticket is shared, and only events that order something, or
 *    memory that changes hands, take one.
 * 2. Which order the recorder makes of it. Events with tickets come in the order of their tickets; each thread's others stay between
 *    the thread's tickets where they were. That is an order in which the run could have happened: whatever an acquire received was
 *    released under an earlier ticket, by a thread whose earlier events are before that; blocks are freed before they are
 *    allocated again; a thread begins with a ticket after its fork's, and ends with one before its join's. Two accesses that nothing
 *    of this orders are unordered by happens-before, and which of them comes first changes no verdict but that of detectors which know no
 *    such order (eraser).
 * 3. Nothing is lost: who finds no room waits for the recorder. If the recorder is gone, or wants no more, the program goes on and
 *    nobody listens.
 * 4. The built-in detector is off: this is not the time to report, and the memory for histories is not needed.
 * 5. In the child of a fork() nobody listens: the memory is the parent's.
 */
#include "guest/record.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "core/recording.h"
#include "guest/access.h"
#include "guest/accu.h"
#include "guest/annotations.h"
#include "guest/pacer.h"
#include "guest/policy.h"
#include "guest/seen.h"
#include "guest/spin.h"
#include "guest/system.h"
#include "guest/tap.h"
#include "guest/transactions.h"

#define AHEAD 64    /* words: the recorder has cleared the block, so its lines come from another processor's cache */
#define AGAIN 4096u /* bytes of a freed block that count as written after the free, too: an access there by another is a race */

static struct rf_recording *recording;
static uint32_t maps_lock;

/* ---- when nobody listens any more ---- */

static const struct rf_tap deaf = { .alone = true,
                                    .hears_system = true,
                                    .access = rf_tap_no_access,
                                    .sync = rf_tap_no_sync,
                                    .memory = rf_tap_no_memory,
                                    .end = rf_tap_no_end,
                                    .modules = rf_tap_nothing,
                                    .fork_child = rf_tap_nothing };

/* ---- blocks ---- */

static bool recorder_wants(void)
{
    if (!__atomic_load_n(&recording->stopped, __ATOMIC_ACQUIRE) && RF_SYSCALL(SYS_kill, recording->recorder, 0) >= 0)
        return true;
    rf_tap = &deaf;
    return false;
}

/* One that the recorder has given back. */
static bool take_free(uint32_t *block)
{
    uint64_t taken = __atomic_load_n(&recording->taken, __ATOMIC_RELAXED);
    do {
        if (taken == __atomic_load_n(&recording->freed, __ATOMIC_ACQUIRE))
            return false;
        /* The entry stays what it is until `taken` has passed it. */
        *block = __atomic_load_n(&rf_rec_free(recording)[taken % recording->blocks], __ATOMIC_RELAXED);
    } while (!__atomic_compare_exchange_n(&recording->taken, &taken, taken + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return true;
}

/* One that was never used: as many as there are for threads that have none, fewer for those that could wait. */
static bool take_fresh(uint32_t *block, uint64_t limit)
{
    uint64_t fresh = __atomic_load_n(&recording->fresh, __ATOMIC_RELAXED);
    do
        if (fresh >= limit)
            return false;
    while (!__atomic_compare_exchange_n(&recording->fresh, &fresh, fresh + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    *block = (uint32_t)fresh;
    return true;
}

static bool wait_for_recorder(uint32_t turn)
{
    struct timespec soon = { .tv_nsec = 50000000 };
    __atomic_store_n(&recording->waiting, 1, __ATOMIC_SEQ_CST);
    long result = 0;
    if (__atomic_load_n(&recording->taken, __ATOMIC_SEQ_CST) == __atomic_load_n(&recording->freed, __ATOMIC_SEQ_CST))
        result = RF_SYSCALL(SYS_futex, &recording->turn, FUTEX_WAIT, turn, &soon, 0, 0);
    return result != -ETIMEDOUT && !__atomic_load_n(&recording->stopped, __ATOMIC_ACQUIRE) ? true : recorder_wants();
}

static __attribute__((noinline)) bool next_block(struct rf_self *self)
{
    uint32_t block, turn;
    if (rf_tap == &deaf)
        return false;
    for (;;) {
        turn = __atomic_load_n(&recording->turn, __ATOMIC_ACQUIRE);
        if (take_free(&block) || take_fresh(&block, self->tape ? recording->plenty : recording->blocks))
            break;
        if (!wait_for_recorder(turn))
            return false;
    }
    bool first = !self->tape;
    struct rf_rec_block *at = rf_rec_block(recording, block);
    at->thread = self->number;
    self->tape = (uint64_t *)(void *)at->entries;
    self->tape_end = (uint64_t *)(void *)(at + 1);
    uint64_t place = __atomic_fetch_add(&recording->logged, 1, __ATOMIC_RELAXED) % recording->blocks;
    __atomic_store_n(&rf_rec_log(recording)[place], block + 1, __ATOMIC_RELEASE);
    if (first) { /* it begins */
        self->tape[1] = __atomic_fetch_add(&recording->tickets, 1, __ATOMIC_SEQ_CST);
        __atomic_store_n(&self->tape[0], (uint64_t)(RF_REC_BEGIN + 1) << 48, __ATOMIC_RELEASE);
        self->tape += 2;
    }
    return true;
}

static inline bool room(struct rf_self *self, unsigned entries)
{
    return __builtin_expect(self->tape && self->tape + 2 * entries <= self->tape_end, 1) || next_block(self);
}

static void put_pair(struct rf_self *self, uint64_t what, uint64_t more, uint64_t what2, uint64_t more2)
{
    uint64_t *at = self->tape;
    at[3] = more2;
    __atomic_store_n(&at[2], RF_REC_MORE | what2, __ATOMIC_RELAXED);
    at[1] = more;
    __atomic_store_n(&at[0], what, __ATOMIC_RELEASE);
    self->tape = at + 4;
}

/* ---- the tap ---- */

static uint64_t mark(const struct rf_self *self)
{
    return self->system ? RF_REC_SYSTEM : 0;
}

static void put_access(struct rf_self *self, uintptr_t addr, size_t size, enum rf_op op, uintptr_t pc)
{
    uint64_t what = mark(self) | (uint64_t)(op + 1) << 48 | (addr & RF_REC_ADDRESS);
    pc = rf_tap_site(self, pc);
    if (__builtin_expect(size > 255, 0)) {
        if (room(self, 2))
            put_pair(self, what, pc, size, 0);
        return;
    }
    if (!room(self, 1))
        return;
    uint64_t *at = self->tape;
    at[1] = pc;
    __atomic_store_n(&at[0], what | (uint64_t)size << 56, __ATOMIC_RELEASE);
    self->tape = at + 2;
}

/* Two atomic accesses do not race, an atomic and a plain one do. A trace has no such accesses; as reads they race with plain writes,
 * and not with each other. What is lost is an atomic write beside a plain read. */
static void tell_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    if (__builtin_expect(rf_benign_any, 0) && rf_benign(addr, size))
        return;
    put_access(self, addr, size, (flags & (RF_A_WRITE | RF_A_ATOMIC)) == RF_A_WRITE ? RF_WRITE : RF_READ, pc);
}

/* What the hooks jump to: the same in few instructions and without a frame, when nothing is out of the ordinary. */
static void hook(uintptr_t addr, uintptr_t pc, uint64_t what)
{
    struct rf_self *self = rf_hot.self;
    if (__builtin_expect(!self || (self->inside | self->busy | self->ignore_reads | self->ignore_writes | self->system | self->in_txn), 0))
        goto other;
    __atomic_store_n(&self->busy, 1, __ATOMIC_RELAXED); /* rf_busy_begin(), but for those that must wait */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t *at = self->tape;
    if (__builtin_expect(__atomic_load_n(&rf_world_stopping, __ATOMIC_RELAXED) || at == self->tape_end || rf_benign_any, 0)) {
        __atomic_store_n(&self->busy, 0, __ATOMIC_RELEASE);
        goto other;
    }
    __builtin_prefetch(at + AHEAD, 1);
    at[1] = pc;
    __atomic_store_n(&at[0], addr | what, __ATOMIC_RELEASE);
    self->tape = at + 2;
    rf_busy_end(self);
    return;
other:
    rf_access(addr, what >> 56, (what >> 48 & 0xff) == RF_WRITE + 1 ? RF_A_WRITE : 0, pc);
}

static void put_ticketed(struct rf_self *self, unsigned op, uint64_t size, unsigned who, uint64_t key, uintptr_t pc)
{
    if (!room(self, 2))
        return;
    uint64_t ticket = __atomic_fetch_add(&recording->tickets, 1, __ATOMIC_SEQ_CST);
    put_pair(self, mark(self) | (uint64_t)(op + 1) << 48 | size, ticket | (uint64_t)who << 60, key, rf_tap_site(self, pc));
}

static void tell_sync(struct rf_self *self, enum rf_tap_who who, enum rf_op op, uint64_t key, uintptr_t pc)
{
    put_ticketed(self, op, 0, who, key, pc);
}

static void tell_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc)
{
    put_ticketed(self, op, size, RF_TAP_SELF, addr, pc);
    if (op == RF_FREE)
        put_access(self, addr, size < AGAIN ? size : AGAIN, RF_WRITE, pc);
}

/* Three entries, the first of them written last. */
static void tell_copy(struct rf_self *self, uintptr_t from, uintptr_t to, size_t size, uintptr_t pc)
{
    if (!size || !room(self, 3))
        return;
    uint64_t *at = self->tape;
    uint64_t ticket = __atomic_fetch_add(&recording->tickets, 1, __ATOMIC_SEQ_CST);
    at[5] = 0;
    at[4] = RF_REC_MORE | to;
    self->tape = at + 6;
    at[3] = rf_tap_site(self, pc);
    at[2] = RF_REC_MORE | from;
    at[1] = ticket;
    __atomic_store_n(&at[0], mark(self) | (uint64_t)(RF_COPY + 1) << 48 | size, __ATOMIC_RELEASE);
}

/* The parts come first, as accesses without a ticket of their own; the commit takes all that the thread has written since the last. */
static void tell_commit(struct rf_self *self, const struct rf_commit_part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (unsigned write = 0; write < 2; write++) {
            unsigned mask = write ? parts[i].written : parts[i].read;
            uintptr_t pc = write ? parts[i].write_pc : parts[i].read_pc;
            while (mask) {
                unsigned first = (unsigned)__builtin_ctz(mask), length = (unsigned)__builtin_ctz(~(mask >> first));
                mask &= ~(((1u << length) - 1) << first);
                if (!rf_benign_any || !rf_benign(parts[i].granule + first, length))
                    put_access(self, parts[i].granule + first, length, write ? RF_COMMIT_WRITE : RF_COMMIT_READ, pc);
            }
        }
    put_ticketed(self, RF_COMMIT, 0, RF_TAP_SELF, 0, 0);
}

static void end(struct rf_self *self)
{
    if (self->tape)
        put_ticketed(self, RF_REC_END, 0, RF_TAP_SELF, 0, 0);
    self->tape = self->tape_end = NULL;
}

/* The maps, as the kernel tells them, for the names of sites. What was there before is still there, or its code has no new sites. */
static void modules(void)
{
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    rf_spin_lock(&maps_lock);
    uint32_t size = recording->maps_size;
    for (long got; size < RF_REC_MAPS && (got = RF_SYSCALL(SYS_read, fd, rf_rec_maps(recording) + size, RF_REC_MAPS - size)) > 0;)
        size += (uint32_t)got;
    __atomic_store_n(&recording->maps_size, size, __ATOMIC_RELEASE);
    rf_spin_unlock(&maps_lock);
    RF_SYSCALL(SYS_close, fd);
}

/* A line like those of the maps, for one address. */
static void named(uintptr_t pc, const char *function, const char *file, unsigned line)
{
    char text[512];
    size_t length = rf_format(text, sizeof text, "%llx-%llx ---p 0 00:00 0 =%s:%u %s", (unsigned long long)pc,
                              (unsigned long long)pc + 1, file, line, function);
    length = length < sizeof text ? length : sizeof text - 1;
    text[length++] = '\n';
    rf_spin_lock(&maps_lock);
    uint32_t size = recording->maps_size;
    if (size + length <= RF_REC_MAPS) {
        for (size_t i = 0; i < length; i++)
            rf_rec_maps(recording)[size + i] = text[i];
        __atomic_store_n(&recording->maps_size, size + (uint32_t)length, __ATOMIC_RELEASE);
    }
    rf_spin_unlock(&maps_lock);
}

static void fork_child(void)
{
    static struct rf_tap silent;
    silent = deaf;
    silent.alone = rf_tap->alone;
    rf_tap = &silent;
    /* Fibers may still have a place there. */
    RF_SYSCALL(SYS_mmap, recording, recording->bytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

static const struct rf_tap tape = { .alone = true,
                                    .hears_system = true,
                                    .access = tell_access,
                                    .sync = tell_sync,
                                    .memory = tell_memory,
                                    .copy = tell_copy,
                                    .commit = tell_commit,
                                    .end = end,
                                    .modules = modules,
                                    .named = named,
                                    .fork_child = fork_child,
                                    .hook = hook };

/* ---- the beginning ---- */

static const char *value_of(char **environment, const char *name)
{
    for (; environment && *environment; environment++) {
        const char *text = *environment, *rest = name;
        while (*rest && *text == *rest)
            text++, rest++;
        if (!*rest && *text == '=')
            return text + 1;
    }
    return NULL;
}

/* The program, and what it starts, need not know. libc's list is the kernel's, in place. */
static void take_out(char **environment, const char *name)
{
    char **to = environment;
    for (char **from = environment; *from; from++) {
        char *one[] = { *from, NULL };
        if (!value_of(one, name))
            *to++ = *from;
    }
    *to = NULL;
}

static char **list_on_stack(void)
{
    extern void *__libc_stack_end; /* where the kernel entered the program: the number of arguments, they, the environment */
    long *count = __libc_stack_end;
    return (char **)(count + 1) + *count + 1;
}

/* The built-in detector goes on as AccuLock or PACER, and every access comes the long way, where it is told first. */
static void listen_beside(void)
{
    static struct rf_tap beside;
    beside = tape;
    beside.alone = beside.hears_system = false;
    beside.hook = NULL;
    rf_policy_no_hot = rf_seen_off = true;
    rf_tap = &beside;
}

void rf_record_begin(char **environment)
{
    const char *text = value_of(environment, RF_REC_VARIABLE);
    if (!text)
        return;
    long fd = 0;
    for (; *text >= '0' && *text <= '9' && fd < 1 << 20; text++)
        fd = 10 * fd + (*text - '0');
    take_out(list_on_stack(), RF_REC_VARIABLE);
    struct rf_recording *head = (struct rf_recording *)RF_SYSCALL(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if ((uintptr_t)head > (uintptr_t)-4096) {
        RF_SYSCALL(SYS_close, fd);
        rf_die("cannot record: descriptor %d of the recorder is not there", (int)fd);
    }
    uint64_t bytes = head->magic == RF_REC_MAGIC ? head->bytes : 0;
    RF_SYSCALL(SYS_munmap, head, 4096);
    if (!bytes)
        rf_die("cannot record: descriptor %d is not the recorder's", (int)fd);
    recording = (struct rf_recording *)RF_SYSCALL(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    RF_SYSCALL(SYS_close, fd);
    if ((uintptr_t)recording > (uintptr_t)-4096)
        rf_die("cannot record: no room for %zu bytes", (size_t)bytes);
    int32_t nobody = 0, me = (int32_t)RF_SYSCALL(SYS_getpid, 0);
    /* Another program that this one was started by, or with, is recorded already. */
    if (!__atomic_compare_exchange_n(&recording->program, &nobody, me, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        RF_SYSCALL(SYS_munmap, recording, bytes);
        return;
    }
    if (rf_tap)
        rf_tap_both(&tape, rf_tap);
    else if (rf_accu || rf_pacer)
        listen_beside();
    else
        rf_tap = &tape;
    modules();
}
