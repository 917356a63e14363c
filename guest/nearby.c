#include "guest/nearby.h"

#include "guest/access.h"
#include "guest/memory.h"
#include "guest/spin.h"
#include "guest/threads.h"

#define SIZE (RF_NEARBY_SETS * RF_NEARBY_WAYS * sizeof(struct rf_nearby))
#define PLACE ((UINT64_C(1) << 56) - 1)

static struct rf_nearby *set_of(struct rf_nearby *all, const uint64_t *place)
{
    uint64_t at = (uintptr_t)place >> 3;
    return &all[(at ^ at >> 7) % RF_NEARBY_SETS * RF_NEARBY_WAYS];
}

void rf_nearby_put(struct rf_self *self, const uint64_t *place, unsigned mask, uint32_t moment, uint32_t note)
{
    if (__builtin_expect(!self->nearby, 0))
        __atomic_store_n(&self->nearby, rf_take(SIZE), __ATOMIC_RELEASE);
    struct rf_nearby *set = set_of(self->nearby, place), *entry = &set[self->nearby_turn++ % RF_NEARBY_WAYS];
    for (unsigned i = 0; i < RF_NEARBY_WAYS; i++)
        if (set[i].moment != moment) { /* of an epoch that is over */
            entry = &set[i];
            break;
        }
    __atomic_store_n(&entry->place_and_mask, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->moment, moment, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->note, note, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->place_and_mask, (uintptr_t)place | (uint64_t)mask << 56, __ATOMIC_RELEASE);
}

void rf_nearby_clear(struct rf_self *self)
{
    if (self->nearby)
        memset(self->nearby, 0, SIZE);
}

/* Under its lock, by busy threads or with the world stopped. */
static struct {
    uint32_t lock, next;
    struct {
        uint32_t thread;
        struct rf_nearby *all;
    } list[RF_NEARBY_ENDED];
} ended;

void rf_nearby_end(struct rf_self *self)
{
    if (!self->nearby)
        return;
    rf_spin_lock(&ended.lock);
    unsigned at = ended.next++ % RF_NEARBY_ENDED;
    struct rf_nearby *old = ended.list[at].all;
    ended.list[at].all = self->nearby;
    ended.list[at].thread = self->number;
    rf_spin_unlock(&ended.lock);
    rf_give(old, SIZE);
    self->nearby = NULL;
}

void rf_nearby_clear_ended(void)
{
    for (unsigned i = 0; i < RF_NEARBY_ENDED; i++)
        if (ended.list[i].all)
            memset(ended.list[i].all, 0, SIZE);
}

struct question {
    uint32_t thread, moment, answer;
    const uint64_t *place;
    unsigned mask;
    bool writes;
};

static void ask(struct question *q, struct rf_nearby *all)
{
    const struct rf_nearby *set = set_of(all, q->place);
    for (unsigned i = 0; i < RF_NEARBY_WAYS; i++) {
        uint64_t place = __atomic_load_n(&set[i].place_and_mask, __ATOMIC_ACQUIRE);
        uint32_t moment = __atomic_load_n(&set[i].moment, __ATOMIC_ACQUIRE), note = __atomic_load_n(&set[i].note, __ATOMIC_ACQUIRE);
        if ((place & PLACE) == (uintptr_t)q->place && (place >> 56 & q->mask) && moment == q->moment &&
            !(rf_note_flags(note) & RF_A_WRITE) == !q->writes &&
            place == __atomic_load_n(&set[i].place_and_mask, __ATOMIC_RELAXED))
            q->answer = note;
    }
}

static void ask_live(struct rf_self *self, void *context)
{
    struct question *q = context;
    struct rf_nearby *all = __atomic_load_n(&self->nearby, __ATOMIC_ACQUIRE);
    if (self->number == q->thread && all)
        ask(q, all);
}

uint32_t rf_nearby_note(uint32_t thread, const uint64_t *place, unsigned mask, uint32_t moment, bool writes)
{
    struct question q = { .thread = thread, .moment = moment, .place = place, .mask = mask, .writes = writes };
    rf_threads_each(ask_live, &q); /* its lock keeps the thread's record where it is */
    bool mine = rf_busy_enter(rf_hot.self); /* fork() must not copy the lock taken */
    rf_spin_lock(&ended.lock);
    for (unsigned i = 0; i < RF_NEARBY_ENDED && !q.answer; i++)
        if (ended.list[i].all && ended.list[i].thread == thread)
            ask(&q, ended.list[i].all);
    rf_spin_unlock(&ended.lock);
    rf_busy_leave(rf_hot.self, mine);
    return q.answer;
}
