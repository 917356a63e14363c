#include "guest/units.h"

#include "guest/memory.h"

#define AT_ONCE 128u /* units that a stripe takes from the plane */
#define UNITS ((1u << 27) - AT_ONCE)

struct rf_stripe rf_stripes[RF_STRIPES];
static uint32_t taken[3]; /* of each plane; grows, by atomic additions */

/* A free unit begins with the number of the next free one. Number 0 is none. */
static uint32_t take_unit(uint32_t *free, uint32_t *next, uint32_t *end, unsigned plane, void *at, size_t size)
{
    uint32_t number = *free;
    if (number) {
        *free = *(uint32_t *)((char *)at + number * size);
    } else {
        if (*next == *end) {
            *next = __atomic_fetch_add(&taken[plane], AT_ONCE, __ATOMIC_RELAXED);
            if (*next > UNITS)
                rf_die("out of room for the histories of shared or divided granules");
            *end = *next + AT_ONCE;
            *next += !*next;
        }
        number = (*next)++;
    }
    memset((char *)at + number * size, 0, size);
    return number;
}

static void give_unit(uint32_t *free, void *at, size_t size, uint32_t number)
{
    *(uint32_t *)((char *)at + number * size) = *free;
    *free = number;
}

#define FEW_SIZE (RF_RECORD_FEW * sizeof(uint64_t))
#define MOST_SIZE (RF_RECORD_MOST * sizeof(uint64_t))

uint32_t rf_readers_new(struct rf_stripe *stripe)
{
    return take_unit(&stripe->free_readers, &stripe->next_readers, &stripe->end_readers, 0, (void *)RF_READERS,
                sizeof(struct rf_readers));
}

static size_t many_size(const uint32_t *many)
{
    return ((size_t)many[0] + 1) * sizeof *many;
}

void rf_readers_end(struct rf_stripe *stripe, uint32_t number)
{
    struct rf_readers *readers = rf_readers_at(number);
    if (readers->is_many)
        rf_give(readers->many, many_size(readers->many));
    readers->is_many = 0; /* `many` itself stays: a thread without the lock may still follow it (invariant 2) */
    give_unit(&stripe->free_readers, (void *)RF_READERS, sizeof(struct rf_readers), number);
}

void rf_readers_add(uint32_t number, uint32_t moment)
{
    struct rf_readers *readers = rf_readers_at(number);
    uint32_t *list = rf_readers_list(readers), room = readers->is_many ? readers->many[0] : RF_FEW;
    if (readers->count == room) {
        uint32_t *larger = rf_take((4 * (size_t)room + 1) * sizeof *larger);
        memcpy(larger + 1, list, room * sizeof *list);
        larger[0] = 4 * room;
        uint32_t *old = readers->is_many ? readers->many : NULL;
        __atomic_store_n(&readers->many, larger, __ATOMIC_RELEASE); /* before is_many: see rf_readers_list without the lock */
        __atomic_store_n(&readers->is_many, 1, __ATOMIC_RELEASE);
        if (old)
            rf_give(old, many_size(old));
        list = larger + 1;
    }
    list[readers->count] = moment;
    __atomic_store_n(&readers->count, readers->count + 1, __ATOMIC_RELEASE);
}

void rf_readers_remove(uint32_t number, uint32_t index)
{
    struct rf_readers *readers = rf_readers_at(number);
    uint32_t *list = rf_readers_list(readers);
    list[index] = list[--readers->count];
}

uint32_t rf_record_new(struct rf_stripe *stripe, unsigned count)
{
    if (count > RF_RECORD_FEW)
        return take_unit(&stripe->free_most, &stripe->next_most, &stripe->end_most, 2, (void *)RF_LRECORDS, MOST_SIZE);
    return take_unit(&stripe->free_few, &stripe->next_few, &stripe->end_few, 1, (void *)RF_RECORDS, FEW_SIZE);
}

void rf_record_end(struct rf_stripe *stripe, uint32_t number, unsigned count)
{
    if (count > RF_RECORD_FEW)
        give_unit(&stripe->free_most, (void *)RF_LRECORDS, MOST_SIZE, number);
    else
        give_unit(&stripe->free_few, (void *)RF_RECORDS, FEW_SIZE, number);
}
