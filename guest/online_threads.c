/* Threads, as the detectors behind the tap know them. See guest/online_parts.h. */
#include "guest/online_parts.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest/memory.h"
#include "guest/threads.h"

/* Under the lock. */
static struct {
    uint32_t *indexes; /* number -> index + 1 */
    uint32_t *numbers; /* index -> number */
    uint32_t index_cap, number_cap, count;
    struct rf_memory memory;
} known;

void rf_online_threads_begin(void)
{
    rf_memory_begin(&known.memory);
}

static uint32_t new_index(uint32_t number)
{
    known.numbers = rf_grow(&known.memory, known.numbers, &known.number_cap, known.count + 1, sizeof *known.numbers);
    known.numbers[known.count] = number;
    return known.count++;
}

uint32_t rf_online_index(uint32_t number)
{
    known.indexes = rf_grow(&known.memory, known.indexes, &known.index_cap, number + 1, sizeof *known.indexes);
    if (!known.indexes[number])
        known.indexes[number] = new_index(number) + 1;
    return known.indexes[number] - 1;
}

uint32_t rf_online_index_for(struct rf_self *self, struct rf_listener *me, enum rf_tap_who who)
{
    if (who == RF_TAP_SELF)
        return me->index;
    if (!me->companions[who])
        me->companions[who] = new_index(self->number) + 1;
    return me->companions[who] - 1;
}

uint32_t rf_online_number(uint32_t index, uint32_t other)
{
    return index < known.count ? known.numbers[index] : other;
}

uint32_t rf_online_indexes(void)
{
    return known.count;
}

struct rf_listener *rf_listener_new(struct rf_self *self)
{
    struct rf_listener *me =
        rf_take(sizeof *me); /* whole pages, which huge ones must not take the place of: most threads use a few */
    RF_SYSCALL(SYS_madvise, me, sizeof *me, MADV_NOHUGEPAGE);
    me->filter.stamp = 1 << 16;
    me->engine = (struct rf_engine){ .memory = &self->memory, .options = &rf_online_settings };
    me->repeats = rf_online_detector->pairs ? rf_take(sizeof *me->repeats) : NULL;
    literace_init(&me->sampler, &me->engine);
    me->sampler.random += self->number * UINT64_C(0x9e3779b97f4a7c15);
    rf_spin_lock(&rf_online_lock);
    me->index = rf_online_index(self->number);
    rf_spin_unlock(&rf_online_lock);
    return self->online = me;
}

void rf_listener_end(struct rf_self *self)
{
    struct rf_listener *me = self->online;
    if (me && me->repeats)
        rf_give(me->repeats, sizeof *me->repeats);
    rf_give(me, me ? sizeof *me : 0);
    self->online = NULL;
    self->races = 0;
}
