#include "guest/facts.h"

#include "guest/memory.h"
#include "guest/options.h"
#include "guest/report.h"
#include "guest/slots.h"
#include "guest/spin.h"
#include "guest/threads.h"

struct facts {
    uint32_t parent, creation;
    int32_t tid;
    uint8_t state, is_fiber;
    union {
        char name[16];
        struct rf_self *live; /* while LIVE: the rest is there */
    };
};

#define CHUNK 512u
#define FIRST_CHUNKS 8u

static struct facts **chunks; /* facts are not moved */
static uint32_t chunk_count, chunk_cap, count;

static struct facts *facts_at(uint32_t number)
{
    return &chunks[number / CHUNK][number % CHUNK];
}

uint32_t rf_facts_new(struct rf_self *self)
{
    if (count == chunk_count * CHUNK) {
        if (chunk_count == chunk_cap) {
            uint32_t cap = chunk_cap ? 2 * chunk_cap : FIRST_CHUNKS;
            struct facts **larger = rf_take(cap * sizeof *larger);
            if (chunks)
                memcpy(larger, chunks, chunk_count * sizeof *larger);
            rf_give(chunks, chunk_cap * sizeof *chunks);
            chunks = larger;
            chunk_cap = cap;
        }
        chunks[chunk_count++] = rf_take(CHUNK * sizeof **chunks);
    }
    struct facts *f = facts_at(count);
    f->state = RF_F_LIVE;
    f->live = self;
    return count++;
}

void rf_facts_end(struct rf_self *self, enum rf_facts_state state)
{
    struct facts *f = facts_at(self->number);
    f->parent = self->parent;
    f->creation = self->creation;
    f->tid = self->tid;
    f->state = (uint8_t)state;
    f->is_fiber = self->is_fiber;
    memcpy(f->name, self->name, sizeof f->name);
}

void rf_facts_become(uint32_t number, enum rf_facts_state state)
{
    facts_at(number)->state = (uint8_t)state;
}

void rf_facts_left(uint32_t number)
{
    if (facts_at(number)->state == RF_F_NOT_JOINED)
        facts_at(number)->state = RF_F_LEFT;
}

void rf_facts_all_left(void)
{
    for (uint32_t number = 0; number < count; number++)
        rf_facts_left(number);
}

bool rf_thread_facts(uint32_t number, struct rf_thread_facts *out)
{
    bool mine = rf_busy_enter(rf_hot.self), known = false;
    *out = (struct rf_thread_facts){ .number = number, .main = number == 0 };
    rf_spin_lock(&rf_slots_lock);
    if (number < count) {
        const struct facts *f = facts_at(number);
        known = true;
        out->running = f->state == RF_F_LIVE;
        out->parent = out->running ? f->live->parent : f->parent;
        out->creation = out->running ? f->live->creation : f->creation;
        out->tid = out->running ? f->live->tid : f->tid;
        out->is_fiber = out->running ? f->live->is_fiber : f->is_fiber;
        memcpy(out->name, out->running ? f->live->name : f->name, sizeof out->name);
    }
    rf_spin_unlock(&rf_slots_lock);
    rf_busy_leave(rf_hot.self, mine);
    return known;
}

/* How many were created at the same place as this one and nobody joined; they are not counted again. 0 also at the end. */
static uint32_t count_leaks(uint32_t number)
{
    uint32_t leaks = 0;
    if (number >= count || facts_at(number)->state != RF_F_NOT_JOINED)
        return 0;
    uint32_t creation = facts_at(number)->creation;
    for (uint32_t other = number; other < count; other++) {
        struct facts *f = facts_at(other);
        if (f->state == RF_F_NOT_JOINED && f->creation == creation) {
            f->state = RF_F_LEFT;
            leaks++;
        }
    }
    return leaks;
}

void rf_threads_leaks(void)
{
    struct rf_self *self = rf_hot.self;
    if (!self || !rf_options.report_thread_leaks)
        return;
    bool more = true;
    for (uint32_t number = 1; more; number++) { /* the lock is let go for each report */
        bool mine = rf_busy_enter(self);
        rf_spin_lock(&rf_slots_lock);
        uint32_t leaks = count_leaks(number);
        more = number < count;
        rf_spin_unlock(&rf_slots_lock);
        rf_busy_leave(self, mine);
        if (leaks)
            rf_report_thread_leak(number, leaks);
    }
}
