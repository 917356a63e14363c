/* Transactions: what a thread accesses between begin and commit counts as made at the commit, and commits that share a variable are
 * ordered (Goldilocks, section 3.2). guest/itm.c hears of those of gcc -fgnu-tm, redflag_txn_*() of hand-made ones.
 *
 * 1. Inside a transaction accesses are collected, granule by granule, and not looked at. A roll-back forgets them.
 * 2. Commits are told in one order. Who is about to commit takes a ticket; after the real commit it waits for its turn. The order of
 *    tickets is one in which the commits happened: a transaction that has seen what another one wrote saw it after the other's real
 *    commit, and took its ticket later. A transaction that only read, and was overtaken by a writer of the same, comes after it here;
 *    the writer cannot have learnt anything from it, so nothing is lost.
 * 3. While it waits, the thread is in no transaction any more, so nobody who commits waits for it: only for earlier tickets, whose
 *    owners are in the real commit or at work here. A real commit that fails gives its ticket back.
 * 4. A variable's bytes refer to the clock of the last commit that had them: by then that knew all earlier ones. With
 *    transactions=writes a write need not know the earlier ones; then the clocks are joined.
 * 5. What is a race: a transactional access and a plain one, unordered. Two transactional ones never are.
 */
#ifndef RF_GUEST_TRANSACTIONS_H
#define RF_GUEST_TRANSACTIONS_H

#include "guest/self.h"

/* One granule of a commit. */
struct rf_commit_part {
    uintptr_t granule;
    uint32_t read_note, write_note;
    uintptr_t read_pc, write_pc;
    uint8_t read, written; /* bytes */
};

void rf_txn_begin(struct rf_self *self); /* they nest */
/* The innermost ends; the outermost in two steps, around the real commit. True: it was the outermost, and rf_txn_committed() is due. */
bool rf_txn_commits(struct rf_self *self);
/* A library of transactions begins one after this, and what it does itself orders nothing: until the first that is told of it. */
void rf_txn_begins_outside(struct rf_self *self);
void rf_txn_committed(struct rf_self *self);
void rf_txn_aborts(struct rf_self *self, bool outermost); /* the innermost, or all, are undone and over */
void rf_txn_restarts(struct rf_self *self);               /* all is undone; the outermost begins again */

/* For guest/access.c, if self->in_txn: to be looked at at the commit. */
void rf_txn_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc);
void rf_txn_new_memory(struct rf_self *self, uintptr_t addr, size_t size); /* what was collected there is another block's */

/* For an interceptor that frees: did libitm call it, for its own purposes (guest/itm.c)? What the program frees in a transaction libitm
 * frees as well, but in that transaction. Asked if libitm is used at all: a thread in which it frees has used it. */
extern bool rf_itm_used RF_OURS;
bool rf_itm_frees(const struct rf_self *self);

/* Memory is given back: guest/objects.c. */
extern bool rf_txn_used RF_OURS;
void rf_txn_forget(uintptr_t addr, size_t size);
void rf_txn_thread_end(struct rf_self *self); /* busy */
void rf_txn_fork_child(void);

#endif
