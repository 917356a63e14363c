#include "guest/units.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest/memory.h"

#define AT_ONCE 128u /* units that a stripe takes from the plane */
#define UNITS (RF_LANES_FIRST - AT_ONCE) /* what is not lanes must not look like them where a word names it */
#ifndef RF_LANES_MOST                    /* tests have fewer */
#define RF_LANES_MOST ((1u << 27) - RF_LANES_FIRST - AT_ONCE)
#endif
#define HUGE_FROM ((size_t)2 << 20) /* from here on a plane has huge pages: its units are taken one after the other, and met by chance */

struct rf_stripe rf_stripes[RF_STRIPES];
static uint32_t taken[4]; /* of each plane; grows, by atomic additions */

/* A free unit begins with the number of the next free one. Number 0 is none: `most` are in use. */
static uint32_t take_unit(uint32_t *free, uint32_t *next, uint32_t *end, unsigned plane, void *at, size_t size, uint32_t most)
{
    uint32_t number = *free;
    if (number) {
        *free = *(uint32_t *)((char *)at + number * size);
    } else {
        if (*next == *end) {
            uint32_t first = __atomic_load_n(&taken[plane], __ATOMIC_RELAXED); /* who asks in vain must not make it wrap */
            if (first < most)
                first = __atomic_fetch_add(&taken[plane], AT_ONCE, __ATOMIC_RELAXED);
            if (first >= most)
                return 0;
            *next = first;
            *end = *next + AT_ONCE;
            if (*next * size == HUGE_FROM)
                RF_SYSCALL(SYS_madvise, (char *)at + HUGE_FROM, UNITS * size - HUGE_FROM, MADV_HUGEPAGE);
            *next += !*next;
        }
        number = (*next)++;
    }
    return number;
}

/* The same for what there is nothing else to take for. */
static uint32_t take_needed(uint32_t *free, uint32_t *next, uint32_t *end, unsigned plane, void *at, size_t size)
{
    uint32_t number = take_unit(free, next, end, plane, at, size, UNITS);
    if (!number)
        rf_die("out of room for the histories of shared or divided granules");
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
    uint32_t number = take_needed(&stripe->free_readers, &stripe->next_readers, &stripe->end_readers, 0, (void *)RF_READERS,
                                sizeof(struct rf_readers));
    struct rf_readers *readers = rf_readers_at(number);
    readers->count = readers->is_many = readers->passes = 0; /* the lock may be somebody's (4.) */
    memset(readers->few, 0, sizeof readers->few);
    readers->many = NULL;
    return number;
}

void rf_readers_lock(struct rf_readers *readers)
{
    for (unsigned turns = 0; !rf_readers_try_lock(readers); turns++) {
        if (turns < 100)
            __builtin_ia32_pause();
        else /* with fewer cores than threads the owner may not be running */
            rf_yield();
    }
}

static size_t many_size(uint32_t room)
{
    return ((size_t)room + 1) * sizeof(uint32_t);
}

/* Lists of more than RF_MANY_LIMIT moments are pages, and stay mapped: who looks without the lock (invariant 2) may still follow the
 * pointer to one. Each size has its own, four times the last; those that are free hang together by their first words. */
#define SIZES 12u
static struct {
    uint32_t lock;
    uint32_t *free[SIZES];
} large;

static unsigned large_size(uint32_t room)
{
    unsigned size = 0;
    for (uint32_t smaller = RF_MANY_LIMIT; smaller < room && size < SIZES - 1; smaller *= 4)
        size++;
    return size;
}

static uint32_t *take_many(uint32_t room)
{
    uint32_t *many = NULL;
    if (room > RF_MANY_LIMIT) {
        rf_spin_lock(&large.lock);
        uint32_t **free = &large.free[large_size(room)];
        if ((many = *free))
            memcpy(free, many, sizeof *free);
        rf_spin_unlock(&large.lock);
    }
    if (!many)
        many = rf_take(many_size(room));
    many[0] = room;
    return many;
}

static void give_many(uint32_t *many)
{
    uint32_t room = many[0];
    if (room <= RF_MANY_LIMIT) {
        rf_give(many, many_size(room));
        return;
    }
    RF_SYSCALL(SYS_madvise, many, many_size(room), MADV_DONTNEED);
    rf_spin_lock(&large.lock);
    uint32_t **free = &large.free[large_size(room)];
    memcpy(many, free, sizeof *free);
    *free = many;
    rf_spin_unlock(&large.lock);
}

void rf_readers_end(struct rf_stripe *stripe, uint32_t number)
{
    struct rf_readers *readers = rf_readers_at(number);
    if (readers->is_many)
        give_many(readers->many);
    readers->is_many = 0; /* `many` itself stays: a thread without the lock may still follow it (invariant 2) */
    give_unit(&stripe->free_readers, (void *)RF_READERS, sizeof(struct rf_readers), number);
}

void rf_readers_add(uint32_t number, uint32_t moment)
{
    struct rf_readers *readers = rf_readers_at(number);
    uint32_t *list = rf_readers_list(readers), room = readers->is_many ? readers->many[0] : RF_FEW;
    if (readers->count == room) {
        uint32_t *larger = take_many(4 * room);
        memcpy(larger + 1, list, room * sizeof *list);
        uint32_t *old = readers->is_many ? readers->many : NULL;
        __atomic_store_n(&readers->many, larger, __ATOMIC_RELEASE); /* before is_many: see rf_readers_list without the lock */
        __atomic_store_n(&readers->is_many, 1, __ATOMIC_RELEASE);
        if (old)
            give_many(old);
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
    list[readers->count] = 0; /* hooks look at places beyond the count, too; names are given again */
}

uint32_t rf_record_new(struct rf_stripe *stripe, unsigned count)
{
    bool most = count > RF_RECORD_FEW;
    uint32_t number = most ? take_needed(&stripe->free_most, &stripe->next_most, &stripe->end_most, 2, (void *)RF_LRECORDS, MOST_SIZE)
                           : take_needed(&stripe->free_few, &stripe->next_few, &stripe->end_few, 1, (void *)RF_RECORDS, FEW_SIZE);
    memset(rf_record_at(number, count), 0, most ? MOST_SIZE : FEW_SIZE);
    return number;
}

void rf_record_end(struct rf_stripe *stripe, uint32_t number, unsigned count)
{
    if (count > RF_RECORD_FEW)
        give_unit(&stripe->free_most, (void *)RF_LRECORDS, MOST_SIZE, number);
    else
        give_unit(&stripe->free_few, (void *)RF_RECORDS, FEW_SIZE, number);
}

uint32_t rf_lane_new(struct rf_stripe *stripe)
{
    uint32_t number = take_unit(&stripe->free_lanes, &stripe->next_lanes, &stripe->end_lanes, 3, (void *)RF_LANES, 1 << RF_LANES_BITS,
                                RF_LANES_MOST);
    return number ? RF_LANES_FIRST + number : 0;
}

void rf_lane_end(struct rf_stripe *stripe, uint32_t name)
{
    give_unit(&stripe->free_lanes, (void *)RF_LANES, 1 << RF_LANES_BITS, name - RF_LANES_FIRST);
}
