/* Well-formedness of traces (see check.h).
 *
 * 1. After a violation the state is what the event says it is: one wrong line is reported once, not with every line after
 *    it.
 * 2. Acquiring a lock again is legal for its holder; it is free again after as many releases.
 */
#include "trace/check.h"

#include <string.h>

#include "trace/blocks.h"
#include "trace/grow.h"
#include "trace/map.h"

#define NOBODY UINT32_MAX

struct hold {
    uint32_t thread, writes, reads; /* how often it holds the lock in each mode */
};

struct lock {
    struct hold *holds; /* of those that hold it now */
    size_t count, capacity;
};

struct actor {
    uint32_t performer; /* of the events written for it; NOBODY: itself */
    bool acted, forked, joined;
    uint64_t held; /* locks, counted once for each acquire */
};

struct rf_check {
    rf_violation_fn *report;
    void *context;
    const struct rf_batch *batch;
    uint64_t violations;
    struct rf_map lock_index, conditions;
    struct lock *locks;
    size_t locks_capacity;
    struct actor *actors;
    size_t actors_capacity;
    struct rf_blocks blocks;
    bool sampling;
};

struct rf_check *rf_check_new(rf_violation_fn *report, void *context)
{
    struct rf_check *check = rf_resize(NULL, sizeof *check);
    *check = (struct rf_check){ .report = report, .context = context };
    return check;
}

void rf_check_free(struct rf_check *check)
{
    if (!check)
        return;
    for (size_t i = 0; i < check->lock_index.count; i++)
        free(check->locks[i].holds);
    free(check->locks);
    free(check->actors);
    rf_map_free(&check->lock_index);
    rf_map_free(&check->conditions);
    rf_blocks_free(&check->blocks);
    free(check);
}

uint64_t rf_check_violations(const struct rf_check *check)
{
    return check->violations;
}

static void violation(struct rf_check *check, const struct rf_event *event, const char *reason)
{
    check->violations++;
    check->report(check->context, rf_event_number(check->batch, event), event, reason);
}

static struct actor *actor_of(struct rf_check *check, uint32_t thread)
{
    size_t known = check->actors_capacity;
    if (thread >= known) {
        check->actors = rf_reserve(check->actors, &check->actors_capacity, (size_t)thread + 1, sizeof *check->actors);
        for (size_t i = known; i < check->actors_capacity; i++)
            check->actors[i] = (struct actor){ .performer = NOBODY };
    }
    return &check->actors[thread];
}

static struct lock *lock_of(struct rf_check *check, uint64_t addr)
{
    size_t known = check->lock_index.count;
    uint32_t index = rf_map_add(&check->lock_index, addr);
    if (index == known) {
        check->locks = rf_reserve(check->locks, &check->locks_capacity, known + 1, sizeof *check->locks);
        check->locks[index] = (struct lock){ 0 };
    }
    return &check->locks[index];
}

static struct hold *hold_of(struct lock *lock, uint32_t thread)
{
    for (size_t i = 0; i < lock->count; i++)
        if (lock->holds[i].thread == thread)
            return &lock->holds[i];
    return NULL;
}

static void acquire(struct rf_check *check, const struct rf_event *event, uint32_t thread)
{
    struct lock *lock = lock_of(check, event->addr);
    bool write = event->op == RF_ACQUIRE, written = false, read = false;
    for (size_t i = 0; i < lock->count; i++) {
        if (lock->holds[i].thread == thread)
            continue;
        written |= lock->holds[i].writes > 0;
        read |= lock->holds[i].reads > 0;
    }
    struct hold *hold = hold_of(lock, thread);
    if (written)
        violation(check, event, "another thread holds the lock");
    else if (write && read)
        violation(check, event, "another thread holds the lock for reading");
    else if (write && hold && hold->writes == 0)
        violation(check, event, "the thread holds the lock for reading, and cannot acquire it for writing as well");
    if (!hold) {
        lock->holds = rf_reserve(lock->holds, &lock->capacity, lock->count + 1, sizeof *lock->holds);
        hold = &lock->holds[lock->count++];
        *hold = (struct hold){ .thread = thread };
    }
    if (write)
        hold->writes++;
    else
        hold->reads++;
    actor_of(check, thread)->held++;
}

static void release(struct rf_check *check, const struct rf_event *event, uint32_t thread)
{
    struct lock *lock = lock_of(check, event->addr);
    struct hold *hold = hold_of(lock, thread);
    bool write = event->op == RF_RELEASE;
    if (!hold) {
        violation(check, event, lock->count ? "another thread holds the lock" : "nobody holds the lock");
        return;
    }
    uint32_t *depth = write ? &hold->writes : &hold->reads;
    if (*depth == 0) {
        violation(check, event,
                  write ? "the thread holds the lock for reading only" : "the thread holds the lock for writing");
        depth = write ? &hold->reads : &hold->writes;
    }
    --*depth;
    actor_of(check, thread)->held--;
    if (hold->writes == 0 && hold->reads == 0)
        *hold = lock->holds[--lock->count];
}

static void fork_thread(struct rf_check *check, const struct rf_event *event, uint32_t thread)
{
    struct actor *child = actor_of(check, (uint32_t)event->addr);
    if (event->addr == thread)
        violation(check, event, "a thread forks itself");
    else if (child->forked)
        violation(check, event, "the thread was forked before");
    else if (child->joined)
        violation(check, event, "the thread was joined before");
    else if (child->acted)
        violation(check, event, "the thread acted before it was forked");
    child->forked = true;
}

static void join_thread(struct rf_check *check, const struct rf_event *event, uint32_t thread)
{
    struct actor *child = actor_of(check, (uint32_t)event->addr);
    if (event->addr == thread) {
        violation(check, event, "a thread joins itself");
        return;
    }
    if (!child->forked && !child->acted)
        violation(check, event, "the thread was never seen");
    else if (child->joined)
        violation(check, event, "the thread was joined before");
    else if (child->held)
        violation(check, event, "the thread still holds a lock");
    child->joined = true;
}

static uint64_t end_of(const struct rf_event *event)
{
    return event->addr + event->size;
}

static void touch(struct rf_check *check, const struct rf_event *event, const struct rf_event *blamed)
{
    if (check->blocks.root && rf_blocks_any(&check->blocks, event->addr, end_of(event), true))
        violation(check, blamed, "the memory is freed");
}

static void memory(struct rf_check *check, const struct rf_event *event)
{
    switch (event->op) {
    case RF_ALLOC:
        rf_blocks_set(&check->blocks, event->addr, end_of(event), false);
        break;
    case RF_FREE:
        if (rf_blocks_any(&check->blocks, event->addr, end_of(event), true))
            violation(check, event, "the memory is freed already");
        if (rf_blocks_any(&check->blocks, event->addr, end_of(event), false))
            rf_blocks_set(&check->blocks, event->addr, end_of(event), true);
        break;
    default: /* COPY; its COPY_TO is behind it */
        touch(check, &event[0], event);
        touch(check, &event[1], event);
    }
}

static void synchronise(struct rf_check *check, const struct rf_event *event, uint32_t thread)
{
    switch (event->op) {
    case RF_ACQUIRE:
    case RF_READ_ACQUIRE:
        acquire(check, event, thread);
        break;
    case RF_RELEASE:
    case RF_READ_RELEASE:
        release(check, event, thread);
        break;
    case RF_FORK:
        fork_thread(check, event, thread);
        break;
    case RF_JOIN:
        join_thread(check, event, thread);
        break;
    case RF_SIGNAL:
        rf_map_add(&check->conditions, event->addr);
        break;
    case RF_WAIT:
        if (rf_map_find(&check->conditions, event->addr) == RF_NO_INDEX)
            violation(check, event, "nobody has signalled the condition");
        break;
    case RF_SAMPLE_BEGIN:
    case RF_SAMPLE_END:
        if (check->sampling == (event->op == RF_SAMPLE_BEGIN))
            violation(check, event, check->sampling ? "a sampling period is open already" : "no sampling period is open");
        check->sampling = event->op == RF_SAMPLE_BEGIN;
        break;
    default:
        break;
    }
}

void rf_check_batch(struct rf_check *check, const struct rf_batch *batch)
{
    check->batch = batch;
    const struct rf_event *head = batch->events;
    for (const struct rf_event *event = batch->events; event < batch->events + batch->count; event++) {
        enum rf_op op = (enum rf_op)event->op;
        if (op == RF_IDENTITY) {
            struct actor *written = actor_of(check, event->thread);
            written->performer = event->addr == event->thread ? NOBODY : (uint32_t)event->addr;
            continue;
        }
        uint32_t thread = actor_of(check, event->thread)->performer;
        if (thread == NOBODY)
            thread = event->thread;
        if (rf_op_kind(op) == RF_PART) {
            if (op != RF_COPY_TO)
                touch(check, event, head);
            continue;
        }
        head = event;
        struct actor *actor = actor_of(check, thread);
        if (actor->joined)
            violation(check, event, "the thread was joined before");
        actor->acted = true;
        if (rf_op_kind(op) == RF_ACCESS)
            touch(check, event, event);
        else if (rf_op_kind(op) == RF_MEMORY)
            memory(check, event);
        else
            synchronise(check, event, thread);
    }
}
