#include "guest/nearby.h"

#include "guest/access.h"
#include "guest/memory.h"
#include "guest/moments.h"
#include "guest/spin.h"
#include "guest/threads.h"

#define FEW_SETS 4u
#define PLACE ((UINT64_C(1) << 56) - 1)

static size_t table_size(uint32_t sets)
{
    return sizeof(struct rf_nearby) + sets * RF_NEARBY_WAYS * sizeof(struct rf_nearby_access);
}

static struct rf_nearby *table_new(uint32_t sets, struct rf_nearby *smaller)
{
    struct rf_nearby *table = rf_take(table_size(sets));
    table->sets = sets;
    table->smaller = smaller;
    return table;
}

static void table_free(struct rf_nearby *table)
{
    while (table) {
        struct rf_nearby *smaller = table->smaller;
        rf_give(table, table_size(table->sets));
        table = smaller;
    }
}

static struct rf_nearby_access *set_of(struct rf_nearby *table, const uint64_t *place)
{
    uint64_t at = (uintptr_t)place >> 3;
    return &table->accesses[((at ^ at >> 7) & (table->sets - 1)) * RF_NEARBY_WAYS];
}

static inline void put_access(struct rf_nearby *table, const uint64_t *place, unsigned mask, uint32_t moment, uint32_t note)
{
    struct rf_nearby_access *entry = &set_of(table, place)[__builtin_ctz(mask) / 2 % RF_NEARBY_WAYS];
    __atomic_store_n(&entry->place_and_mask, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->moment, moment, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->note, note, __ATOMIC_RELEASE);
    __atomic_store_n(&entry->place_and_mask, (uintptr_t)place | (uint64_t)mask << 56, __ATOMIC_RELEASE);
    table->puts++;
}

/* Whoever finds the larger table finds all in it that the small one has. */
static struct rf_nearby *larger(struct rf_self *self, struct rf_nearby *old)
{
    struct rf_nearby *table = table_new(old ? RF_NEARBY_SETS : FEW_SETS, old);
    for (unsigned i = 0; old && i < old->sets * RF_NEARBY_WAYS; i++) {
        const struct rf_nearby_access *access = &old->accesses[i];
        if (access->place_and_mask)
            put_access(table, (const uint64_t *)(access->place_and_mask & PLACE), (unsigned)(access->place_and_mask >> 56),
                access->moment, access->note);
    }
    __atomic_store_n(&self->nearby, table, __ATOMIC_RELEASE);
    return table;
}

void rf_nearby_put(struct rf_self *self, const uint64_t *place, unsigned mask, uint32_t moment, uint32_t note)
{
    struct rf_nearby *table = self->nearby;
    if (__builtin_expect(!table || (table->sets == FEW_SETS && table->puts >= FEW_SETS * RF_NEARBY_WAYS), 0))
        table = larger(self, table);
    put_access(table, place, mask, moment, note);
}

static void table_clear(struct rf_nearby *table)
{
    for (; table; table = table->smaller)
        memset(table->accesses, 0, table_size(table->sets) - sizeof *table);
}

void rf_nearby_clear(struct rf_self *self)
{
    table_clear(self->nearby);
}

/* Under its lock, by busy threads or with the world stopped. */
static struct {
    uint32_t lock, next;
    struct {
        uint32_t thread;
        struct rf_nearby *table;
    } list[RF_NEARBY_ENDED];
} ended;

void rf_nearby_end(struct rf_self *self)
{
    if (!self->nearby)
        return;
    rf_spin_lock(&ended.lock);
    unsigned at = ended.next++ % RF_NEARBY_ENDED;
    struct rf_nearby *old = ended.list[at].table;
    ended.list[at].table = self->nearby;
    ended.list[at].thread = self->number;
    rf_spin_unlock(&ended.lock);
    table_free(old);
    self->nearby = NULL;
}

void rf_nearby_clear_ended(void)
{
    for (unsigned i = 0; i < RF_NEARBY_ENDED; i++)
        table_clear(ended.list[i].table);
}

struct question {
    uint32_t thread, moment, answer;
    const uint64_t *place;
    unsigned mask;
    bool writes;
};

static void ask(struct question *q, struct rf_nearby *table)
{
    const struct rf_nearby_access *set = set_of(table, q->place);
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
    struct rf_nearby *table = __atomic_load_n(&self->nearby, __ATOMIC_ACQUIRE);
    if (self->number == q->thread && table)
        ask(q, table);
}

uint32_t rf_nearby_note(uint32_t thread, const uint64_t *place, unsigned mask, uint32_t moment, bool writes)
{
    struct question q = { .thread = thread, .moment = moment, .place = place, .mask = mask, .writes = writes };
    rf_threads_each(ask_live, &q); /* its lock keeps the thread's record where it is */
    bool mine = rf_busy_enter(rf_hot.self); /* fork() must not copy the lock taken */
    rf_spin_lock(&ended.lock);
    for (unsigned i = 0; i < RF_NEARBY_ENDED && !q.answer; i++)
        if (ended.list[i].table && ended.list[i].thread == thread)
            ask(&q, ended.list[i].table);
    rf_spin_unlock(&ended.lock);
    rf_busy_leave(rf_hot.self, mine);
    return q.answer;
}
