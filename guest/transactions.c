#include "guest/transactions.h"

#include "guest/access.h"
#include "guest/accu.h"
#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/moments.h"
#include "guest/online.h"
#include "guest/options.h"
#include "guest/pacer.h"
#include "guest/refusal.h"
#include "guest/spin.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/verdict.h"
#include "guest/versions.h"

#define LEVELS 64u
#define RECENT 256u

/* What a thread keeps. Only the thread itself touches it, busy. */
struct transaction {
    uint32_t depth, count, cap;
    uint32_t ticket;
    bool has_ticket;
    bool outside; /* rf_txn_begins_outside() */
    struct rf_commit_part *parts;
    uint32_t first[LEVELS];        /* of the parts, at each level; deeper ones belong to the last */
    struct rf_frame *top;          /* of the frames, at the outermost begin: a roll-back goes there */
    uint32_t ignore_reads, ignore_writes, ignore_sync;
    uint32_t recent[RECENT];       /* where a granule may be among the parts */
};

static struct transaction *transaction_of(struct rf_self *self)
{
    if (!self->txn) {
        bool mine = rf_busy_enter(self);
        self->txn = rf_take(sizeof(struct transaction));
        rf_busy_leave(self, mine);
    }
    return self->txn;
}

void rf_txn_thread_end(struct rf_self *self)
{
    struct transaction *txn = self->txn;
    self->txn = NULL;
    self->in_txn = 0;
    if (!txn)
        return;
    if (txn->parts)
        rf_give(txn->parts, txn->cap * sizeof *txn->parts);
    rf_give(txn, sizeof *txn);
}

void rf_txn_begins_outside(struct rf_self *self)
{
    struct transaction *txn = self->txn;
    self->ignore_sync += !txn->outside;
    txn->outside = true;
}

static inline void is_inside(struct rf_self *self, struct transaction *txn)
{
    self->ignore_sync -= txn->outside && self->ignore_sync;
    txn->outside = false;
}

/* ---- collecting ---- */

static struct rf_commit_part *part_of(struct transaction *txn, uintptr_t granule)
{
    uint32_t *recent = &txn->recent[(granule >> 3 ^ granule >> 11) % RECENT];
    uint32_t level = txn->depth < LEVELS ? txn->depth - 1 : LEVELS - 1;
    if (*recent < txn->count && *recent >= txn->first[level] && txn->parts[*recent].granule == granule)
        return &txn->parts[*recent];
    if (txn->count == txn->cap) {
        uint32_t cap = txn->cap ? 2 * txn->cap : 64;
        struct rf_commit_part *larger = rf_take(cap * sizeof *larger);
        for (uint32_t i = 0; i < txn->count; i++)
            larger[i] = txn->parts[i];
        if (txn->parts)
            rf_give(txn->parts, txn->cap * sizeof *txn->parts);
        txn->parts = larger;
        txn->cap = cap;
    }
    *recent = txn->count;
    txn->parts[txn->count] = (struct rf_commit_part){ .granule = granule };
    return &txn->parts[txn->count++];
}

void rf_txn_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    struct transaction *txn = self->txn;
    uint32_t note = 0;
    if (txn->outside)
        is_inside(self, txn);
    rf_busy_begin(self);
    for (uintptr_t end = addr + size, length; addr < end; addr += length) {
        length = RF_GRANULE - addr % RF_GRANULE;
        if (length > end - addr)
            length = end - addr;
        unsigned mask = ((1u << length) - 1) << addr % RF_GRANULE;
        struct rf_commit_part *part = part_of(txn, addr & ~(uintptr_t)(RF_GRANULE - 1));
        if (!(mask & ~(unsigned)(flags & RF_A_WRITE ? part->written : part->read | part->written)))
            continue;
        if (!note)
            note = rf_moment_note_here(self, pc, flags | RF_A_TXN, size);
        if (flags & RF_A_WRITE) {
            part->written |= (uint8_t)mask;
            part->write_note = note;
            part->write_pc = pc;
        } else {
            part->read |= (uint8_t)mask;
            part->read_note = note;
            part->read_pc = pc;
        }
    }
    rf_busy_end(self);
}

void rf_txn_new_memory(struct rf_self *self, uintptr_t addr, size_t size)
{
    struct transaction *txn = self->txn;
    for (uint32_t i = 0; i < txn->count; i++)
        if (txn->parts[i].granule - addr < size)
            txn->parts[i].read = txn->parts[i].written = 0;
}

/* ---- tickets ---- */

#define TICKETS 65536u /* no more are out at once */
#define SPINS 100u

static struct {
    uint32_t next; /* the one that is taken next */
    uint32_t turn; /* whose turn it is: written under the lock, read by all that wait */
    uint32_t lock;
    uint8_t done[TICKETS];
    uint32_t sleeps[TICKETS]; /* 1: who has this ticket sleeps until its turn comes */
} tickets;

static void give_ticket(struct rf_self *self, uint32_t ticket)
{
    bool mine = rf_busy_enter(self);
    rf_spin_lock(&tickets.lock);
    tickets.done[ticket % TICKETS] = 1;
    uint32_t turn = tickets.turn;
    for (; tickets.done[turn % TICKETS]; turn++)
        tickets.done[turn % TICKETS] = 0;
    __atomic_store_n(&tickets.turn, turn, __ATOMIC_SEQ_CST);
    rf_spin_unlock(&tickets.lock);
    rf_busy_leave(self, mine);
    uint32_t *sleeps = &tickets.sleeps[turn % TICKETS];
    if (__atomic_exchange_n(sleeps, 0, __ATOMIC_SEQ_CST))
        rf_futex_wake(sleeps);
}

static void wait_for_turn(uint32_t ticket)
{
    uint32_t *sleeps = &tickets.sleeps[ticket % TICKETS];
    for (unsigned turns = 0; turns < SPINS; turns++) {
        if (__atomic_load_n(&tickets.turn, __ATOMIC_ACQUIRE) == ticket)
            return;
        __builtin_ia32_pause();
    }
    /* Either the turn is seen here, or whoever makes it ours sees that somebody sleeps. */
    while (__atomic_store_n(sleeps, 1, __ATOMIC_SEQ_CST), __atomic_load_n(&tickets.turn, __ATOMIC_SEQ_CST) != ticket)
        rf_futex_wait(sleeps, 1);
    __atomic_store_n(sleeps, 0, __ATOMIC_RELAXED);
}

/* ---- clocks of variables ---- */

/* What a commit knew when it was done. Under the lock. */
struct knowledge {
    uint32_t references;
    struct rf_clock clock;
};

/* The bytes of a granule that transactions have had. */
struct variable {
    uintptr_t granule; /* 0: none; 1: there was one */
    struct knowledge *bytes[RF_GRANULE];
};

bool rf_txn_used;

static struct {
    uint32_t lock;
    struct variable *table;
    size_t cap, used; /* `used` counts those that were, too */
    struct knowledge *everything; /* transactions=all */
} variables;

static void drop(struct knowledge *knowledge)
{
    if (!knowledge || --knowledge->references)
        return;
    rf_clock_give(&knowledge->clock);
    rf_give(knowledge, sizeof *knowledge);
}

static void refer(struct knowledge **place, struct knowledge *knowledge)
{
    if (*place == knowledge)
        return;
    knowledge->references++;
    drop(*place);
    *place = knowledge;
}

static void join(struct rf_clock *into, const struct rf_clock *from)
{
    rf_clock_room(into, from->len);
    rf_clock_join(into, NULL, from);
}

static struct knowledge *knowledge_of(const struct rf_clock *clock)
{
    struct knowledge *knowledge = rf_take(sizeof *knowledge);
    rf_clock_room(&knowledge->clock, clock->len);
    rf_clock_copy(&knowledge->clock, NULL, clock);
    knowledge->references = 1;
    return knowledge;
}

static size_t place_in(const struct variable *table, size_t cap, uintptr_t granule)
{
    size_t i = (granule >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (cap - 1);
    while (table[i].granule && table[i].granule != granule)
        i = (i + 1) & (cap - 1);
    return i;
}

static void make_room(void)
{
    size_t live = 0, cap = 1024;
    for (size_t i = 0; i < variables.cap; i++)
        live += variables.table[i].granule > 1;
    while (cap < 4 * (live + 1))
        cap *= 2;
    struct variable *table = rf_pages(cap * sizeof *table);
    for (size_t i = 0; i < variables.cap; i++)
        if (variables.table[i].granule > 1)
            table[place_in(table, cap, variables.table[i].granule)] = variables.table[i];
    if (variables.table)
        rf_pages_back(variables.table, variables.cap * sizeof *table);
    variables.table = table;
    variables.cap = cap;
    variables.used = live;
}

static struct variable *variable_of(uintptr_t granule, bool make)
{
    if (!variables.cap || 2 * (variables.used + 1) > variables.cap) {
        if (!make)
            return variables.cap ? &variables.table[place_in(variables.table, variables.cap, granule)] : NULL;
        make_room();
    }
    struct variable *variable = &variables.table[place_in(variables.table, variables.cap, granule)];
    if (!variable->granule && make) {
        variable->granule = granule;
        variables.used++;
    }
    return variable;
}

static void forget_variable(struct variable *variable)
{
    for (unsigned byte = 0; byte < RF_GRANULE; byte++)
        drop(variable->bytes[byte]);
    *variable = (struct variable){ .granule = 1 };
}

void rf_txn_forget(uintptr_t addr, size_t size)
{
    struct rf_self *self = rf_hot.self;
    bool mine = rf_busy_enter(self);
    rf_spin_lock(&variables.lock);
    if (size / RF_GRANULE > variables.cap) {
        for (size_t i = 0; i < variables.cap; i++)
            if (variables.table[i].granule > 1 && variables.table[i].granule - addr < size)
                forget_variable(&variables.table[i]);
    } else {
        uintptr_t first = (addr + RF_GRANULE - 1) & ~(uintptr_t)(RF_GRANULE - 1);
        for (uintptr_t at = first; at < addr + size; at += RF_GRANULE) {
            struct variable *variable = variable_of(at, false);
            if (variable && variable->granule == at)
                forget_variable(variable);
        }
    }
    rf_spin_unlock(&variables.lock);
    rf_busy_leave(self, mine);
}

/* ---- the commit ---- */

enum mode { SHARED, ALL, WRITES };

static enum mode mode(void)
{
    return rf_options.transactions[0] == 'a' ? ALL : rf_options.transactions[0] == 'w' ? WRITES : SHARED;
}

static void receive(struct rf_self *self, const struct transaction *txn)
{
    struct rf_clock *clock = &self->thread.clock;
    const struct knowledge *last = NULL;
    if (rf_accu) /* commits have a lock in common, which orders nothing */
        return;
    rf_spin_lock(&variables.lock);
    if (mode() == ALL && variables.everything)
        join(clock, &variables.everything->clock);
    for (uint32_t i = 0; mode() != ALL && i < txn->count; i++) {
        const struct rf_commit_part *part = &txn->parts[i];
        unsigned mask = mode() == WRITES ? part->read : part->read | part->written;
        const struct variable *variable = mask ? variable_of(part->granule, false) : NULL;
        for (unsigned byte = 0; variable && variable->granule == part->granule && byte < RF_GRANULE; byte++)
            if (mask >> byte & 1 && variable->bytes[byte] && variable->bytes[byte] != last) {
                last = variable->bytes[byte];
                join(clock, &last->clock);
            }
    }
    rf_version_ends(self);
    rf_spin_unlock(&variables.lock);
}

/* Invariant 4. */
static void hand_on_byte(struct knowledge **place, struct knowledge *own)
{
    if (mode() != WRITES || !*place) {
        refer(place, own);
        return;
    }
    struct knowledge *both = knowledge_of(&own->clock);
    join(&both->clock, &(*place)->clock);
    refer(place, both);
    drop(both);
}

static void hand_on(struct rf_self *self, const struct transaction *txn)
{
    rf_spin_lock(&variables.lock);
    struct knowledge *own = knowledge_of(&self->thread.clock);
    if (mode() == ALL)
        refer(&variables.everything, own);
    for (uint32_t i = 0; mode() != ALL && i < txn->count; i++) {
        const struct rf_commit_part *part = &txn->parts[i];
        unsigned mask = mode() == WRITES ? part->written : part->read | part->written;
        struct variable *variable = mask ? variable_of(part->granule, true) : NULL;
        for (unsigned byte = 0; variable && byte < RF_GRANULE; byte++)
            if (mask >> byte & 1)
                hand_on_byte(&variable->bytes[byte], own);
    }
    drop(own);
    rf_spin_unlock(&variables.lock);
}

static void look_at(struct rf_self *self, const struct rf_commit_part *part)
{
    struct rf_found race;
    unsigned read = part->read & ~part->written;
    if (read && rf_access_noted(self, part->granule, read, RF_A_TXN, part->read_note, &race))
        rf_race_found(self, &race);
    if (part->written && rf_access_noted(self, part->granule, part->written, RF_A_WRITE | RF_A_TXN, part->write_note, &race))
        rf_race_found(self, &race);
}

/* It is this thread's turn. */
static void commit(struct rf_self *self, struct transaction *txn)
{
    if (rf_tap) {
        bool mine = rf_busy_enter(self);
        if (rf_tap->commit)
            rf_tap->commit(self, txn->parts, txn->count);
        rf_busy_leave(self, mine);
        rf_online_flush(self);
        if (rf_tap->alone)
            return;
    }
    rf_busy_begin(self);
    receive(self, txn);
    rf_busy_end(self);
    rf_txn_used = true; /* before there is a moment of a transaction in any history */
    for (uint32_t i = 0; i < txn->count; i++)
        look_at(self, &txn->parts[i]);
    rf_busy_begin(self);
    hand_on(self, txn);
    rf_epoch_begin(self); /* what comes after is not handed on */
    rf_busy_end(self);
}

/* ---- begin and end ---- */

void rf_txn_begin(struct rf_self *self)
{
    struct transaction *txn = transaction_of(self);
    if (!txn->depth) {
        rf_pacer_transaction(self);
        txn->count = 0;
        txn->top = rf_hot.top;
        txn->ignore_reads = self->ignore_reads;
        txn->ignore_writes = self->ignore_writes;
        txn->ignore_sync = self->ignore_sync;
        rf_busy_begin(self);
        rf_epoch_begin(self); /* the hooks find nothing that they know */
        self->in_txn = 1;
        rf_busy_end(self);
    }
    if (txn->depth < LEVELS)
        txn->first[txn->depth] = txn->count;
    txn->depth++;
}

bool rf_txn_commits(struct rf_self *self)
{
    struct transaction *txn = self->txn;
    if (!txn || !txn->depth)
        return false;
    is_inside(self, txn);
    if (txn->depth > 1) {
        txn->depth--;
        return false;
    }
    txn->ticket = __atomic_fetch_add(&tickets.next, 1, __ATOMIC_SEQ_CST);
    txn->has_ticket = true;
    return true;
}

void rf_txn_committed(struct rf_self *self)
{
    struct transaction *txn = self->txn;
    txn->depth = 0;
    self->in_txn = 0;
    wait_for_turn(txn->ticket);
    rf_late_begin(self); /* it has happened */
    if (txn->count || mode() == ALL)
        commit(self, txn);
    txn->has_ticket = false;
    give_ticket(self, txn->ticket);
    rf_late_end(self);
}

static void undo(struct rf_self *self, struct transaction *txn, uint32_t depth)
{
    is_inside(self, txn);
    txn->count = depth < LEVELS ? txn->first[depth] : txn->first[LEVELS - 1];
    if (depth)
        return;
    if (txn->has_ticket)
        give_ticket(self, txn->ticket);
    txn->has_ticket = false;
    rf_hot.top = txn->top;
    self->ignore_reads = txn->ignore_reads;
    self->ignore_writes = txn->ignore_writes;
    self->ignore_sync = txn->ignore_sync;
}

void rf_txn_aborts(struct rf_self *self, bool outermost)
{
    struct transaction *txn = self->txn;
    if (!txn || !txn->depth)
        return;
    txn->depth = outermost ? 0 : txn->depth - 1;
    undo(self, txn, txn->depth);
    self->in_txn = txn->depth != 0;
}

void rf_txn_restarts(struct rf_self *self)
{
    struct transaction *txn = self->txn;
    if (!txn || !txn->depth)
        return;
    undo(self, txn, 0);
    txn->depth = 1;
}

void rf_txn_fork_child(void)
{
    tickets.turn = tickets.next;
    tickets.lock = variables.lock = 0;
    for (uint32_t i = 0; i < TICKETS; i++)
        tickets.done[i] = 0, tickets.sleeps[i] = 0;
}

/* ---- hand-made ones ---- */

static struct rf_self *caller(void)
{
    struct rf_self *self = rf_started ? rf_self() : NULL;
    return self && !self->inside ? self : NULL;
}

RF_EXPORT void redflag_rt_txn_begin(void);
void redflag_rt_txn_begin(void)
{
    if (caller())
        rf_txn_begin(caller());
}

RF_EXPORT void redflag_rt_txn_commit(void);
void redflag_rt_txn_commit(void)
{
    struct rf_self *self = caller();
    if (self && rf_txn_commits(self))
        rf_txn_committed(self);
}

RF_EXPORT void redflag_rt_txn_abort(void);
void redflag_rt_txn_abort(void)
{
    if (caller())
        rf_txn_aborts(caller(), false);
}
