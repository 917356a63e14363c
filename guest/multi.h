/* MultiLock-HB on the words of the built-in detector: its rules (detect/multilock.inc) for moments.
 *
 * 1. rf_multi is set before the second thread begins and never changes. rf_accu is true then, too: clocks, locks and reports are those
 *    of guest/accu.h.
 * 2. The history of a granule is a list of accesses: a moment, a kind, and the bytes that it is kept for. A step is made on the list, and
 *    is the one that detect/multilock.h makes on the lists of each byte.
 * 3. A list is a word of guest/hot.h, 2, if there is one that says just that: nothing, one write, writes of some bytes and of all others,
 *    a write of all bytes and a read of some, both with one read more in a pair, or one or two atomic ones. So the hot hooks, and what looks whether an access repeats one of
 *    its epoch, are the same for all detectors. Such a word is replaced by compare-and-swap.
 * 4. Longer lists are in records (guest/units.h), under the lock of the stripe. A place of a record has the bytes in M, the moment in Y,
 *    and in X, too, if it is of a write; `writes` is set if it is atomic. So sweeps, and who looks for moments of its own without the
 *    lock, read them as they read any. More than RF_RECORD_MOST are in a chain of records: M of the word is RF_MULTI_CHAIN, the
 *    last place of each has no bytes, and the number of the next one in X.
 * 5. An epoch ends when the thread hands something on, be it by a lock's release. This is earlier than rule 2 of detect/multilock.h asks
 *    for, which does not matter: an access that is not left out by rule 3 takes the place of the earlier one by rule 4. What is
 *    received ends none: rule 3 needs no more than that nobody learns of an access before its epoch has ended.
 * 6. Inside an epoch the locks held only grow (guest/accu.h, 4), so one that repeats an earlier access is left out by rule 3.
 * 7. Accesses of an epoch that have the same kind and the same locks are one in the list, from whatever places: which place it was for
 *    which bytes is in guest/nearby.h.
 */
#ifndef RF_GUEST_MULTI_H
#define RF_GUEST_MULTI_H

#include "guest/granule.h"

#define RF_MULTI_CHAIN (RF_RECORD_MOST + 1)

/* One granule, whose word was `word`; the thread is busy and step->now is known. step->race tells. */
void rf_multi_step(uint64_t *place, uint64_t word, unsigned mask, struct rf_step *step);

/* What rf_multi_step() would make of a word in the cases that nearly all are: all that the access meets happens before it, and it takes the
 * place of all of its kind. false: not such a case. If `again` is true afterwards, the same step from the same place
 * on more bytes of such a word adds them to M. */
bool rf_multi_quick(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next, bool *again);

void rf_multi_clear(uint64_t *place, unsigned mask); /* these bytes were never accessed */
/* The world is stopped. These bytes get the history of those in the granule at `first` and the one after it that lie `offset` further. */
void rf_multi_copy(uint64_t *place, uintptr_t first, unsigned offset, unsigned mask);
/* For sweeps: each moment of a record gets the name that `visit` gives it. */
void rf_multi_visit(uint64_t word, uint64_t (*visit_place)(uint64_t place, uint32_t (*visit)(uint32_t moment)),
                    uint32_t (*visit)(uint32_t moment));

#endif
