/* What the files behind the tap share: guest/online.c chooses the detector and listens to synchronisation, online_access.c to accesses,
 * online_memory.c to memory and commits, online_races.c tells what was found, and online_threads.c has what is known of a thread.
 *
 * 1. rf_online_lock is the lock of guest/online.h, 1. Whoever takes it is busy and takes no other after it. It may be taken under an
 *    object's.
 * 2. A listener belongs to one thread and is touched by it alone, but for its index, which is set under the lock with the first that is
 *    told of the thread, by itself or by its creator.
 * 3. A race is kept in the listener while something is held, and told by rf_online_tell(), before the access happens; an atomic access
 *    that is told with its object locked has happened by then. Where races are refused none is (guest/atomics.c, refuse_told).
 * 4. The detector and its settings are set before the second thread begins and never change.
 */
#ifndef RF_GUEST_ONLINE_PARTS_H
#define RF_GUEST_ONLINE_PARTS_H

#include "guest/online.h"
#include "guest/online_filter.h"
#include "guest/online_pairs.h"
#include "guest/refusal.h"
#include "guest/report.h"
#include "guest/spin.h"
#include "sample/literace.h"

#define RF_AT_ONCE 64u /* granules of a long access, or pages of a block, for which the lock is held at once */

/* An access that was found to race, and was not recorded (guest/refusal.h, 2). */
struct rf_refused_access {
    uintptr_t addr, pc;
    size_t size; /* 0: none */
    unsigned flags;
};

struct rf_listener {
    struct rf_filter filter;
    struct rf_repeats *repeats; /* of a detector that finds pairs of sites; NULL: another one */
    struct literace sampler;    /* and what it needs of an engine */
    struct rf_engine engine;
    uint32_t accesses;             /* in sampling periods that are measured in time: from time to time it is looked at */
    uint32_t index, companions[3]; /* + 1; 0: none yet. companions[RF_TAP_SELF] is not used */
    struct rf_online_race races[RF_PENDING];
    struct rf_told told[RF_TOLD]; /* races that need not be told again */
    struct rf_refused_access refused;
};

extern const struct rf_online *rf_online_detector RF_OURS;
extern struct rf_options rf_online_settings RF_OURS;
extern uint32_t rf_online_lock RF_OURS;
extern uint64_t rf_online_changes RF_OURS;                            /* guest/online_filter.h; atomic */
extern bool rf_online_by_time RF_OURS, rf_online_by_function RF_OURS; /* pacer's periods; literace */
extern uint64_t rf_online_work RF_OURS;                               /* synchronisation operations so far; under the lock */

/* -- guest/online_threads.c -- */

void rf_online_threads_begin(void);
struct rf_listener *rf_listener_new(struct rf_self *self);
void rf_listener_end(struct rf_self *self);
/* Under the lock: the index of the thread with this number, that of a companion of the calling one, and back: the number of an index, or
 * `other` if there is none; and how many there are. */
uint32_t rf_online_index(uint32_t number);
uint32_t rf_online_index_for(struct rf_self *self, struct rf_listener *me, enum rf_tap_who who);
uint32_t rf_online_number(uint32_t index, uint32_t other);
uint32_t rf_online_indexes(void);

static inline struct rf_listener *rf_listener_of(struct rf_self *self)
{
    return __builtin_expect(self->online != NULL, 1) ? self->online : rf_listener_new(self);
}

static inline struct rf_filter *rf_filter_of(struct rf_listener *me)
{
    uint64_t now = __atomic_load_n(&rf_online_changes, __ATOMIC_RELAXED);
    if (__builtin_expect(me->filter.changes != now, 0)) {
        rf_filter_next(&me->filter);
        me->filter.changes = now;
    }
    return &me->filter;
}

/* -- guest/online_access.c -- */

void rf_hear_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc);
void rf_online_hook(uintptr_t addr, uintptr_t pc, uint64_t what); /* what the hooks jump to */
void rf_online_hook_of_pairs(uintptr_t addr, uintptr_t pc, uint64_t what);
/* True: the access would race, which is kept to be told, and it is not recorded. */
bool rf_online_refuses(struct rf_self *self, struct rf_listener *me, uintptr_t addr, size_t size, unsigned flags,
                       uintptr_t pc);
/* Under the lock. */
void rf_online_do(struct rf_self *self, struct rf_listener *me, const struct rf_online_access *access, uintptr_t addr,
                  unsigned size);
void rf_online_turn(struct rf_listener *me, enum rf_op op);

/* -- guest/online_memory.c -- */

void rf_hear_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc);
void rf_hear_copy(struct rf_self *self, uintptr_t from, uintptr_t to, size_t size, uintptr_t pc);
void rf_hear_unseen(void);
void rf_hear_commit(struct rf_self *self, const struct rf_commit_part *parts, uint32_t count);

/* -- guest/online_races.c -- */

/* `addr` and `size` are of the second access. */
void rf_online_found(struct rf_self *self, struct rf_listener *me, const struct rf_online_access *access,
                     struct rf_online_race *race, uintptr_t addr, size_t size);

#endif
