/* Clocks that a runtime keeps beside its own locks and volatile fields (Wood, section 4.3.1: ReadVC and WriteVC).
 *
 * 1. A clock is the runtime's: it sees to it that nobody reads a clock that another writes. A clock that is never written again after
 *    others could see it, as a volatile field's, may be read by all.
 * 2. For a listener (guest/tap.h, 4) a clock is a set of keys: what was ever added to it was published under one of them. One of them may
 *    be its own; under that, and no other, more is published. A copy shares the keys, so none of them is anybody's own any more.
 * 3. What a thread published under a key alone is no news once the thread has published again, nor is anything that the thread knew.
 *    So the set has never more keys than threads.
 */
#include "guest/embed.h"

#include "guest/atomics.h"
#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/seen.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/versions.h"

struct key {
    uint64_t key;
    uint32_t thread; /* number + 1 of the only one that published under it; 0: several */
    uint32_t own;    /* atomic: cleared by whoever copies the clock */
};

struct redflag_clock {
    struct rf_clock clock;
    struct key *keys;
    uint32_t count, cap;
};

RF_EXPORT struct redflag_clock *redflag_rt_clock_new(void);
RF_EXPORT void redflag_rt_clock_free(struct redflag_clock *clock);
RF_EXPORT void redflag_rt_clock_read(struct redflag_clock *clock);
RF_EXPORT void redflag_rt_clock_add(struct redflag_clock *clock);
RF_EXPORT void redflag_rt_clock_write(const struct redflag_clock *clock);
RF_EXPORT void redflag_rt_system_clock_add(struct redflag_clock *clock);
RF_EXPORT void redflag_rt_system_clock_write(const struct redflag_clock *clock);
RF_EXPORT void redflag_rt_clock_join(struct redflag_clock *to, const struct redflag_clock *from);

/* ---- keys: only if somebody listens; the caller is busy ---- */

static struct key *add_key(struct redflag_clock *clock, uint64_t key, uint32_t thread, bool own)
{
    if (clock->count == clock->cap) {
        uint32_t cap = clock->cap ? 2 * clock->cap : 2;
        struct key *keys = rf_take(cap * sizeof *keys);
        for (uint32_t i = 0; i < clock->count; i++)
            keys[i] = clock->keys[i];
        rf_give(clock->keys, clock->cap * sizeof *keys);
        clock->keys = keys;
        clock->cap = cap;
    }
    clock->keys[clock->count] = (struct key){ key, thread, own };
    return &clock->keys[clock->count++];
}

/* The thread publishes what it knows; `all`: the clock holds nothing else from now on. */
static void publish(struct rf_self *self, struct redflag_clock *clock, bool all)
{
    uint32_t me = self->number + 1, kept = 0;
    struct key own = { 0 };
    for (uint32_t i = 0; i < clock->count; i++) {
        struct key *key = &clock->keys[i];
        if (__atomic_load_n(&key->own, __ATOMIC_RELAXED))
            own = *key;
        else if (!all && key->thread != me)
            clock->keys[kept++] = *key;
    }
    clock->count = kept;
    if (!own.key)
        own = (struct key){ rf_tap_new_key(), me, 1 };
    own.thread = own.thread == me ? me : 0;
    add_key(clock, own.key, own.thread, true);
    rf_tap->sync(self, RF_TAP_SELF, RF_SIGNAL, own.key, 0);
}

/* What another clock holds was replaced by what the thread knows and the other did not: the key of its own says too much now. */
static void disown(struct redflag_clock *clock)
{
    for (uint32_t i = 0; i < clock->count; i++)
        __atomic_store_n(&clock->keys[i].own, 0, __ATOMIC_RELAXED);
}

/* ---- the interface ---- */

struct redflag_clock *redflag_rt_clock_new(void)
{
    struct rf_embed embed = rf_embed_enter();
    struct redflag_clock *clock = NULL;
    if (embed.self) {
        rf_busy_begin(embed.self);
        clock = rf_take(sizeof *clock);
        rf_busy_end(embed.self);
    }
    rf_embed_leave(&embed);
    return clock;
}

void redflag_rt_clock_free(struct redflag_clock *clock)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self && clock) {
        rf_busy_begin(embed.self);
        rf_clock_give(&clock->clock);
        rf_give(clock->keys, clock->cap * sizeof *clock->keys);
        rf_give(clock, sizeof *clock);
        rf_busy_end(embed.self);
    }
    rf_embed_leave(&embed);
}

static void take(struct rf_self *self, struct redflag_clock *clock, bool all)
{
    if (!self || !clock || self->ignore_sync)
        return;
    rf_busy_begin(self);
    bool knows = rf_clock_leq(&clock->clock, &self->thread.clock);
    if (rf_tap && all && !knows)
        disown(clock);
    if (rf_tap)
        publish(self, clock, all || knows);
    rf_clock_room(&clock->clock, self->thread.clock.len);
    if (all)
        rf_clock_copy(&clock->clock, &self->memory, &self->thread.clock);
    else
        rf_clock_join(&clock->clock, &self->memory, &self->thread.clock);
    rf_epoch_begin(self);
    rf_busy_end(self);
}

static void give(struct rf_self *self, const struct redflag_clock *clock)
{
    if (!self || !clock || self->ignore_sync)
        return;
    rf_busy_begin(self);
    for (uint32_t i = 0; rf_tap && i < clock->count; i++)
        rf_tap->sync(self, RF_TAP_SELF, RF_WAIT, clock->keys[i].key, 0);
    rf_clock_room(&self->thread.clock, clock->clock.len);
    rf_clock_receive(self, &clock->clock, 0);
    rf_seen_forget(); /* whoever hands memory over may have made it new */
    rf_busy_end(self);
}

void redflag_rt_clock_read(struct redflag_clock *clock)
{
    struct rf_embed embed = rf_embed_enter();
    take(embed.self, clock, true);
    rf_embed_leave(&embed);
}

void redflag_rt_clock_add(struct redflag_clock *clock)
{
    struct rf_embed embed = rf_embed_enter();
    take(embed.self, clock, false);
    rf_embed_leave(&embed);
}

void redflag_rt_clock_write(const struct redflag_clock *clock)
{
    struct rf_embed embed = rf_embed_enter();
    give(embed.self, clock);
    rf_embed_leave(&embed);
}

/* The runtime system's own: a section is entered, so that they are ignored like all else in it, or told with the mark. */
void redflag_rt_system_clock_add(struct redflag_clock *clock)
{
    redflag_rt_system_begin();
    take(rf_atomic_self(), clock, false);
    redflag_rt_system_end();
}

void redflag_rt_system_clock_write(const struct redflag_clock *clock)
{
    redflag_rt_system_begin();
    give(rf_atomic_self(), clock);
    redflag_rt_system_end();
}

void redflag_rt_clock_join(struct redflag_clock *to, const struct redflag_clock *from)
{
    struct rf_embed embed = rf_embed_enter();
    struct rf_self *self = embed.self;
    if (self && to && from && to != from) {
        rf_busy_begin(self);
        for (uint32_t i = 0; i < from->count; i++) {
            __atomic_store_n(&from->keys[i].own, 0, __ATOMIC_RELAXED);
            bool there = false;
            for (uint32_t j = 0; j < to->count && !there; j++)
                there = to->keys[j].key == from->keys[i].key;
            if (!there)
                add_key(to, from->keys[i].key, from->keys[i].thread, false);
        }
        rf_clock_room(&to->clock, from->clock.len);
        rf_clock_join(&to->clock, &self->memory, &from->clock);
        rf_busy_end(self);
    }
    rf_embed_leave(&embed);
}
