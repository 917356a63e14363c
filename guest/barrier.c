/* pthread_barrier_*: all who arrive come before all who leave, round by round.
 *
 * 1. A round collects what those who arrive know; who leaves it receives that, and nothing of later rounds, however late it is.
 * 2. Who takes part is counted here before the real function counts it. Threads that are more than the barrier's count, and arrive
 *    while the last round is full but nobody has come back from it, may belong to either round: they join the one that is there, which
 *    is then two rounds in one. So a round is left behind only when it is full and its last part is known to be over:
 *    left > arrived - count. Nothing false is reported; what such a crowd misses is the order inside of one double round.
 * 3. A round is given back by the last who leaves it.
 */
#include "guest/access.h"
#include "guest/memory.h"
#include "guest/objects.h"
#include "guest/pthread.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/versions.h"

struct round {
    struct rf_clock clock;
    uint64_t version; /* guest/versions.h */
    uint32_t arrived, left;
    bool current; /* the object names it */
    uint64_t key; /* guest/tap.h */
};

static void give_round(struct round *round)
{
    rf_tap_forget(round->key);
    rf_clock_give(&round->clock);
    rf_give(round, sizeof *round);
}

static void drop_round(struct rf_object *object)
{
    struct round *round = object->detail;
    object->detail = NULL;
    if (!round)
        return;
    round->current = false;
    if (round->left == round->arrived)
        give_round(round);
}

static struct round *arrive(struct rf_self *self, uintptr_t addr)
{
    struct rf_object *object = rf_object_lock(self, addr, RF_O_BARRIER, true);
    struct round *round = object->detail;
    uint32_t count = object->extra;
    if (round && count && round->arrived % count == 0 && round->left + count > round->arrived) {
        drop_round(object);
        round = NULL;
    }
    if (!round) {
        round = object->detail = rf_take(sizeof *round);
        round->current = true;
    }
    round->arrived++;
    if (rf_tap && !round->key)
        round->key = rf_tap_new_key();
    rf_tap_sync(self, RF_SIGNAL, round->key, 0);
    rf_clock_room(&round->clock, self->thread.clock.len);
    rf_clock_publish(self, &round->clock, &round->version);
    rf_epoch_begin(self);
    rf_object_unlock(self, object);
    return round;
}

static void leave(struct rf_self *self, uintptr_t addr, struct round *round)
{
    struct rf_object *object = rf_object_lock(self, addr, RF_O_BARRIER, true);
    rf_tap_sync(self, RF_WAIT, round->key, 0);
    rf_clock_room(&self->thread.clock, round->clock.len);
    rf_clock_receive(self, &round->clock, round->version);
    round->left++;
    if (!round->current && round->left == round->arrived)
        give_round(round);
    rf_object_unlock(self, object);
}

RF_INTERCEPT(int, pthread_barrier_wait, (pthread_barrier_t *barrier))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_barrier_wait, barrier);
    if (!scope.self || scope.self->ignore_sync) {
        int result = RF_REAL(pthread_barrier_wait)(barrier);
        rf_leave(&scope);
        return result;
    }
    rf_range_read(barrier, 1, scope.pc);
    struct round *round = arrive(scope.self, (uintptr_t)barrier);
    rf_park_here(scope.self);
    int result = RF_REAL(pthread_barrier_wait)(barrier);
    rf_range_read(barrier, 1, scope.pc); /* who destroys it must know that all have left, not only that they had arrived */
    leave(scope.self, (uintptr_t)barrier, round);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, pthread_barrier_init, (pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned count))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_barrier_init, barrier, attributes);
    int result = RF_REAL(pthread_barrier_init)(barrier, attributes, count);
    if (scope.self && !result) {
        rf_range_write(barrier, 1, scope.pc);
        rf_objects_forget((uintptr_t)barrier, 1);
        struct rf_object *object = rf_object_lock(scope.self, (uintptr_t)barrier, RF_O_BARRIER, true);
        object->extra = count;
        rf_object_unlock(scope.self, object);
    }
    rf_leave(&scope);
    return result;
}

/* The real one waits until all have left it. */
RF_INTERCEPT(int, pthread_barrier_destroy, (pthread_barrier_t *barrier))
{
    struct rf_scope scope = RF_ENTER_SYNC(pthread_barrier_destroy, barrier);
    int result = RF_REAL(pthread_barrier_destroy)(barrier);
    if (scope.self && !result)
        rf_range_write(barrier, 1, scope.pc);
    rf_leave(&scope);
    return result;
}

/* guest/semaphore.c */
void rf_semaphore_end(struct rf_object *object);

void rf_object_detail_end(struct rf_object *object)
{
    if (object->kind == RF_O_BARRIER)
        drop_round(object);
    else if (object->kind == RF_O_SEMAPHORE)
        rf_semaphore_end(object);
}
