/* gcc's transactional memory: this library stands before libitm's interface, hears what a transaction does, and passes it on.
 *
 * 1. A transaction runs in one of two ways: instrumented for libitm, where its accesses are calls of _ITM_R* and _ITM_W*, which are
 *    heard at guest/itm_doors.S; or not (serial mode, hardware), where they are ordinary code, whose hooks tell them. Both are collected.
 * 2. libitm rolls back and starts again by a jump to the program, past everything here. It calls what _ITM_addUserUndoAction() was
 *    given on the way; that is registered with the first access at each level of nesting, if the transaction may be rolled back. In a
 *    hardware transaction nothing is registered: memory takes back what was collected by itself.
 * 3. What libitm itself does to memory and with locks is nobody's business: it is not instrumented, and what it does through functions
 *    of libc is not looked at while a commit or an abort lasts. When a thread ends, libitm may free what another thread allocated for
 *    it: rf_itm_frees().
 */
#include <stdint.h>

#include "guest/access.h"
#include "guest/heap.h"
#include "guest/intercept.h"
#include "guest/libc.h"
#include "guest/threads.h"
#include "guest/transactions.h"
#include "guest/uninstrumented.h"

enum what { READS, WRITES, COPIES, FILLS, FREES };

static const struct {
    const char *name;
    uint8_t what, size;
} doors[] = {
#define ITM(name, what, size) { #name, what, size },
#include "guest/itm.def"
#undef ITM
};

#define DOORS (sizeof doors / sizeof *doors)

static void *reals[DOORS]; /* found once each; who finds them finds the same */

enum { IN_RETRYABLE = 1 };          /* what _ITM_inTransaction() says */
enum { USER_ABORT = 1, OUTER = 16 }; /* reasons of an abort */

static struct rf_self *caller(void)
{
    struct rf_self *self = rf_started ? rf_self() : NULL;
    return self && !self->inside ? self : NULL;
}

/* ---- roll-backs ---- */

static RF_TLS bool registered; /* since the innermost began */
static RF_TLS bool aborting;   /* the program wants it, since the last door; otherwise it starts again */
static RF_TLS bool quiet;      /* ... and nobody looks */

/* What was written has been put back, by memcpy(). */
static void undone(void *unused)
{
    struct rf_self *self = rf_hot.self;
    (void)unused;
    registered = false;
    if (!self)
        return;
    if (quiet)
        rf_quiet_end(self);
    quiet = false;
    if (!aborting)
        rf_txn_restarts(self);
}

static void register_undo(struct rf_self *self)
{
    static void *ask, *add;
    self->inside++; /* libitm may allocate */
    if (((int (*)(void))rf_real(&ask, "_ITM_inTransaction"))() == IN_RETRYABLE) {
        ((void (*)(void (*)(void *), void *))rf_real(&add, "_ITM_addUserUndoAction"))(undone, NULL);
        registered = true;
    }
    self->inside--;
}

/* ---- accesses ---- */

void *rf_itm_heard(unsigned door, uintptr_t first, uintptr_t second, uintptr_t third, uintptr_t pc) RF_OURS;
void *rf_itm_heard(unsigned door, uintptr_t first, uintptr_t second, uintptr_t third, uintptr_t pc)
{
    struct rf_self *self = caller();
    struct rf_block block;
    void *real = rf_real(&reals[door], doors[door].name);
    if (!self || !self->in_txn)
        return real;
    aborting = false;
    if (!registered)
        register_undo(self);
    switch ((enum what)doors[door].what) {
    case READS:
        rf_access(first, doors[door].size, 0, pc);
        break;
    case WRITES:
        rf_access(first, doors[door].size, RF_A_WRITE, pc);
        break;
    case COPIES:
        rf_access(second, third, 0, pc);
        rf_access(first, third, RF_A_WRITE, pc);
        break;
    case FILLS:
        rf_access(first, third, RF_A_WRITE, pc);
        break;
    case FREES:
        if (first && rf_heap_block(first, &block))
            rf_access(block.addr, block.size, RF_A_WRITE | RF_A_FREE, pc);
        break;
    }
    return real;
}

/* ---- libitm's own memory ---- */

/* Where libitm's code is. Each thread that begins a transaction before this is known finds it, and finds the same. */
static struct rf_module_code libitm;
bool rf_itm_used;

static void find_libitm(uintptr_t pc)
{
    struct rf_module_code code = rf_code_with(pc);
    __atomic_store_n(&libitm.from, code.from, __ATOMIC_RELAXED);
    __atomic_store_n(&libitm.to, code.to, __ATOMIC_RELAXED);
    __atomic_store_n(&rf_itm_used, true, __ATOMIC_RELEASE);
}

bool rf_itm_frees(const struct rf_self *self)
{
    return rf_hot.top > self->frames && !self->in_txn && rf_code_has(&libitm, rf_hot.top[-1].pc);
}

/* ---- begin, commit, abort ---- */

void *rf_itm_begins(void) RF_OURS;
void *rf_itm_begins(void)
{
    static void *real;
    struct rf_self *self = caller();
    if (__builtin_expect(!__atomic_load_n(&rf_itm_used, __ATOMIC_ACQUIRE), 0))
        find_libitm((uintptr_t)rf_real(&real, "_ITM_beginTransaction"));
    registered = aborting = false;
    if (self) {
        rf_txn_begin(self);
        rf_txn_begins_outside(self);
    }
    return rf_real(&real, "_ITM_beginTransaction");
}

static void commit(void (*real)(void *), void *exception)
{
    struct rf_self *self = caller();
    if (!self || !self->in_txn) {
        real(exception);
        return;
    }
    aborting = false;
    if (!registered)
        register_undo(self);
    bool outermost = rf_txn_commits(self);
    rf_quiet_begin(self);
    self->ignore_sync++;
    real(exception); /* or it goes back to the beginning: undone() */
    self->ignore_sync--;
    rf_quiet_end(self);
    if (outermost) {
        registered = false;
        rf_txn_committed(self);
    }
}

RF_INTERCEPT(void, _ITM_commitTransaction, (void *unused))
{
    commit(RF_REAL(_ITM_commitTransaction), unused);
}

RF_INTERCEPT(void, _ITM_commitTransactionEH, (void *exception))
{
    commit(RF_REAL(_ITM_commitTransactionEH), exception);
}

RF_INTERCEPT(void, _ITM_abortTransaction, (int reason))
{
    struct rf_self *self = caller();
    if (self && self->in_txn && reason & USER_ABORT) {
        rf_txn_aborts(self, reason & OUTER);
        aborting = true;
        quiet = registered;
        if (quiet)
            rf_quiet_begin(self); /* until undone() */
        registered = false;
    }
    RF_REAL(_ITM_abortTransaction)(reason);
    __builtin_unreachable();
}
