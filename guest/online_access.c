/* Accesses, as they go to a detector behind the tap: most repeat earlier ones and go no further. See guest/online_parts.h. */
#include "guest/online_parts.h"

#include <sys/syscall.h>
#include <time.h>

#include "guest/access.h"
#include "guest/annotations.h"
#include "guest/moments.h"
#include "guest/pair.h"
#include "guest/threads.h"

/* ---- sampling ---- */

static uint32_t milliseconds(void)
{
    struct timespec now;
    RF_SYSCALL(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

/* Under the lock, before an operation. Outside of sampling periods only synchronisation comes here: that is the work that passes. */
void rf_online_turn(struct rf_listener *me, enum rf_op op)
{
    static uint32_t first;
    if (!rf_online_by_time) {
        rf_online_detector->turn(me->index, op, (uint32_t)rf_online_work);
        return;
    }
    if (op <= RF_WRITE && ++me->accesses % 64)
        return;
    uint32_t now = milliseconds();
    first = first ? first : now;
    rf_online_detector->turn(me->index, op, now - first);
}

/* literace: a thread looks at a function the less, the more often it runs it. The function is known by the place that called it. */
static bool looks(struct rf_self *self, struct rf_listener *me, bool write)
{
    uintptr_t caller = rf_hot.self == self && rf_hot.top > self->frames ? rf_hot.top[-1].pc : 0;
    struct rf_event event = { .op = write ? RF_WRITE : RF_READ, .thread = me->index, .site = (uint32_t)caller };
    return literace_look(&me->sampler, &event);
}

/* ---- accesses ---- */

static inline unsigned mask_of(uintptr_t addr, size_t length)
{
    return ((1u << length) - 1) << addr % RF_GRANULE;
}

bool rf_online_refuses(struct rf_self *self, struct rf_listener *me, uintptr_t addr, size_t size, unsigned flags,
                       uintptr_t pc)
{
    struct rf_online_access access = { .thread = me->index, .flags = flags };
    struct rf_online_race race;
    bool filtered = rf_online_detector->repeats && !(flags & RF_A_ATOMIC), races = false;
    uintptr_t begin = addr, length = 0;
    if (self->late || rf_online_detector->pairs) /* pairs are no races */
        return false;
    rf_spin_lock(&rf_online_lock);
    for (uintptr_t at = addr; at < addr + size && !races; at += length) {
        begin = at;
        length = RF_GRANULE - at % RF_GRANULE;
        if (length > addr + size - at)
            length = addr + size - at;
        if (filtered && rf_filter_has(&me->filter, at, mask_of(at, length), flags & RF_A_WRITE))
            continue;
        races = rf_online_detector->races(&access, at, (unsigned)length, &race);
    }
    rf_spin_unlock(&rf_online_lock);
    if (!races)
        return false;
    access.note = rf_moment_note_here(self, pc, flags, size);
    rf_online_found(self, me, &access, &race, begin, length);
    me->refused.addr = addr;
    me->refused.size = size;
    me->refused.flags = flags;
    me->refused.pc = pc;
    return true;
}

/* Under the lock. One that finds pairs is asked until it finds no more. */
void rf_online_do(struct rf_self *self, struct rf_listener *me, const struct rf_online_access *access, uintptr_t addr,
                  unsigned size)
{
    struct rf_online_race race;
    while (rf_online_detector->access(access, addr, size, &race)) {
        bool pair = rf_online_detector->pairs; /* each has its own bytes */
        rf_online_found(self, me, access, &race, pair ? race.addr : addr, pair ? race.size : size);
        if (!rf_online_detector->pairs)
            break;
    }
}

void rf_hear_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    uint32_t site = rf_online_detector->wants_site ? rf_pair_class(pc) : 0;
    if (rf_online_detector->wants_site && !site)
        return;
    if (__builtin_expect(rf_benign_any, 0) && rf_benign(addr, size))
        return;
    struct rf_listener *me = rf_listener_of(self);
    if (rf_online_by_function && !(flags & (RF_A_ATOMIC | RF_A_FREE)) && !looks(self, me, flags & RF_A_WRITE))
        return;
    struct rf_filter *filter = rf_filter_of(me);
    if (__builtin_expect(rf_refuses, 0) && rf_online_refuses(self, me, addr, size, flags, pc))
        return;
    uintptr_t place = rf_online_detector->pairs ? rf_tap_site(self, pc) : 0;
    struct rf_online_access access = { .thread = me->index, .site = site, .flags = flags };
    bool filtered = rf_online_detector->repeats && !(flags & RF_A_ATOMIC), write = flags & RF_A_WRITE, locked = false;
    unsigned turns = 0;
    for (uintptr_t end_of = addr + size, length; addr < end_of; addr += length) {
        length = RF_GRANULE - addr % RF_GRANULE;
        if (length > end_of - addr)
            length = end_of - addr;
        unsigned mask = mask_of(addr, length);
        if (filtered && rf_filter_has(filter, addr, mask, write))
            continue;
        if (me->repeats && !(flags & RF_A_ATOMIC) &&
            rf_repeats_known(me->repeats, addr, length, write, place, filter->changes))
            continue;
        if (!access.note)
            access.note = rf_moment_note_here(self, pc, flags, size);
        if (!locked) {
            rf_spin_lock(&rf_online_lock);
            locked = true;
            if (rf_online_detector->has_periods && rf_online_by_time)
                rf_online_turn(me, write ? RF_WRITE : RF_READ);
            if (rf_online_detector->pairs && !access.site)
                access.site = rf_pairs_site(place);
        }
        rf_online_do(self, me, &access, addr, (unsigned)length);
        if (filtered)
            rf_filter_add(filter, addr, mask, write);
        if (++turns % RF_AT_ONCE == 0) {
            rf_spin_unlock(&rf_online_lock);
            locked = false;
        }
    }
    if (locked)
        rf_spin_unlock(&rf_online_lock);
}

/* What the hooks jump to: most accesses repeat earlier ones. Whether the thread is inside, or ignores accesses, does not matter then. */
void rf_online_hook(uintptr_t addr, uintptr_t pc, uint64_t what)
{
    struct rf_self *self = rf_hot.self;
    if (__builtin_expect(self && self->online && !self->in_txn && !rf_online_by_function, 1)) {
        struct rf_filter *filter = rf_filter_of(self->online);
        unsigned mask = mask_of(addr, what >> 56);
        if (mask <= 0xff && rf_filter_has(filter, addr, mask, (what >> 48 & 0xff) == RF_WRITE + 1))
            return;
    }
    rf_access(addr, what >> 56, (what >> 48 & 0xff) == RF_WRITE + 1 ? RF_A_WRITE : 0, pc);
}

void rf_online_hook_of_pairs(uintptr_t addr, uintptr_t pc, uint64_t what)
{
    struct rf_self *self = rf_hot.self;
    bool write = (what >> 48 & 0xff) == RF_WRITE + 1;
    size_t size = what >> 56;
    if (__builtin_expect(self && self->online && !self->in_txn, 1) && addr % RF_GRANULE + size <= RF_GRANULE) {
        struct rf_listener *me = self->online;
        if (rf_repeats_has(me->repeats, addr, size, write, pc, __atomic_load_n(&rf_online_changes, __ATOMIC_RELAXED)))
            return;
    }
    rf_access(addr, size, write ? RF_A_WRITE : 0, pc);
}
