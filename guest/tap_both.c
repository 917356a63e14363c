/* Two listeners at one tap: a detector that runs online, and the recorder. What is told is told to the recorder first. So a run can be
 * judged and recorded, and the recording judged again by the same detector or by the oracle: tests/cli/online.sh.
 *
 * The tap's rules (guest/tap.h) hold for both: each call comes while the object is locked, from a busy thread. What the runtime system does
 * (6) is the recorder's alone.
 */
#include "guest/tap.h"

static const struct rf_tap *first, *second;

static void both_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    first->access(self, addr, size, flags, pc);
    if (!self->system)
        second->access(self, addr, size, flags, pc);
}

static void both_sync(struct rf_self *self, enum rf_tap_who who, enum rf_op op, uint64_t key, uintptr_t pc)
{
    first->sync(self, who, op, key, pc);
    if (!self->system && op != RF_IDENTITY)
        second->sync(self, who, op, key, pc);
}

static void both_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc)
{
    first->memory(self, op, addr, size, pc);
    if (!self->system)
        second->memory(self, op, addr, size, pc);
}

static void both_copy(struct rf_self *self, uintptr_t from, uintptr_t to, size_t size, uintptr_t pc)
{
    if (first->copy)
        first->copy(self, from, to, size, pc);
    if (second->copy && !self->system)
        second->copy(self, from, to, size, pc);
}

static void both_unseen(void)
{
    if (first->unseen)
        first->unseen();
    if (second->unseen)
        second->unseen();
}

static void both_commit(struct rf_self *self, const struct rf_commit_part *parts, uint32_t count)
{
    if (first->commit)
        first->commit(self, parts, count);
    if (second->commit)
        second->commit(self, parts, count);
}

static void both_end(struct rf_self *self)
{
    first->end(self);
    second->end(self);
}

static void both_modules(void)
{
    first->modules();
    second->modules();
}

static void both_fork_child(void)
{
    first->fork_child();
    second->fork_child();
    rf_tap = second; /* the recorder leaves the child alone */
}

static void both_forget(uint64_t key)
{
    if (first->forget)
        first->forget(key);
    if (second->forget)
        second->forget(key);
}

void rf_tap_both(const struct rf_tap *recorder, const struct rf_tap *detector)
{
    static struct rf_tap both;
    first = recorder;
    second = detector;
    both = (struct rf_tap){ .alone = true,
                            .hears_system = recorder->hears_system,
                            .access = both_access,
                            .sync = both_sync,
                            .memory = both_memory,
                            .copy = both_copy,
                            .unseen = both_unseen,
                            .commit = both_commit,
                            .end = both_end,
                            .modules = both_modules,
                            .named = recorder->named,
                            .fork_child = both_fork_child,
                            .forget = both_forget,
                            .conditions = detector->conditions };
    rf_tap = &both;
}
