/* Memory that comes and goes, and commits, as they go to a detector behind the tap. See guest/online_parts.h. */
#include "guest/online_parts.h"

#include "guest/access.h"
#include "guest/depot.h"
#include "guest/memory.h"
#include "guest/moments.h"
#include "guest/threads.h"
#include "guest/transactions.h"
#include "shadow/shadow.h"

#define AGAIN                                                                                                               \
    4096u /* bytes of a freed block that count as written after the free, too: an access there by another is a race */

/* ---- memory ---- */

void rf_hear_unseen(void)
{
    __atomic_fetch_add(&rf_online_changes, 1, __ATOMIC_RELAXED);
}

void rf_hear_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc)
{
    struct rf_listener *me = rf_listener_of(self);
    unsigned flags = RF_A_WRITE | (op == RF_FREE ? RF_A_FREE : 0);
    struct rf_online_access access = { .thread = me->index, .flags = flags };
    struct rf_online_race race;
    unsigned turns = 0;
    if (op == RF_FREE && __builtin_expect(rf_refuses, 0) && rf_online_refuses(self, me, addr, size, flags, pc))
        return;
    rf_filter_forget(&me->filter, addr, size);
    if (op == RF_FREE)
        access.note = rf_moment_note_here(self, pc, flags, size);
    rf_spin_lock(&rf_online_lock);
    if (rf_online_detector->pairs) {
        access.site = rf_pairs_site(rf_tap_site(self, pc));
        rf_hear_unseen(); /* guest/online_pairs.h, 3 */
    }
    for (uintptr_t at = addr, length; at < addr + size; at += length) {
        length = RF_PAGE - at % RF_PAGE;
        if (length > addr + size - at)
            length = addr + size - at;
        while (rf_online_detector->memory(&access, op, at, (unsigned)length, &race)) {
            rf_online_found(self, me, &access, &race, race.addr, race.size);
            if (!rf_online_detector->pairs)
                break;
        }
        if (++turns % RF_AT_ONCE == 0) {
            rf_spin_unlock(&rf_online_lock);
            rf_spin_lock(&rf_online_lock);
        }
    }
    rf_spin_unlock(&rf_online_lock);
    if (op == RF_FREE)
        rf_hear_access(self, addr, size < AGAIN ? size : AGAIN, flags, pc);
}

/* In one step for all, since it is under the lock. */
void rf_hear_copy(struct rf_self *self, uintptr_t from, uintptr_t to, size_t size, uintptr_t pc)
{
    (void)self, (void)pc;
    rf_spin_lock(&rf_online_lock);
    rf_online_detector->copy(from, to, size);
    rf_spin_unlock(&rf_online_lock);
    rf_hear_unseen();
}

/* ---- transactions ---- */

/* Bytes of a part that follow each other are one access. Returns where it begins, and how many there are; 0: no more. */
static unsigned next_run(unsigned *mask, unsigned *first)
{
    if (!*mask)
        return 0;
    *first = (unsigned)__builtin_ctz(*mask);
    unsigned length = (unsigned)__builtin_ctz(~(*mask >> *first));
    *mask &= ~(((1u << length) - 1) << *first);
    return length;
}

void rf_hear_commit(struct rf_self *self, const struct rf_commit_part *parts, uint32_t count)
{
    struct rf_listener *me = rf_listener_of(self);
    size_t bytes = (1 + 8 * (size_t)count) * sizeof(struct rf_event); /* a part has no more than eight accesses */
    struct rf_event *event = rf_pages(bytes);
    unsigned first, length;
    *event = (struct rf_event){ .thread = me->index, .op = RF_COMMIT };
    for (uint32_t i = 0; i < count; i++)
        for (unsigned write = 0; write < 2; write++)
            for (unsigned mask = write ? parts[i].written : parts[i].read; (length = next_run(&mask, &first));)
                event[++event->size] = (struct rf_event){ .addr = parts[i].granule + first,
                                                          .thread = me->index,
                                                          .size = length,
                                                          .op = write ? RF_COMMIT_WRITE : RF_COMMIT_READ };
    rf_filter_next(&me->filter);
    rf_spin_lock(&rf_online_lock);
    rf_online_detector->commit(event, true);
    for (uint32_t i = 0; i < count; i++)
        for (unsigned write = 0; write < 2; write++) {
            struct rf_online_access access = { .thread = me->index,
                                               .note = write ? parts[i].write_note : parts[i].read_note,
                                               .flags = write ? RF_A_WRITE : 0 };
            uintptr_t place;
            if (rf_online_detector->pairs && access.note && rf_note_stack(access.note, &place, 1))
                access.site = rf_pairs_site(place);
            for (unsigned mask = write ? parts[i].written : parts[i].read; (length = next_run(&mask, &first));)
                rf_online_do(self, me, &access, parts[i].granule + first, length);
        }
    rf_online_detector->commit(event, false);
    rf_spin_unlock(&rf_online_lock);
    rf_pages_back(event, bytes);
}
