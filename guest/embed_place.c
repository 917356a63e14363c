/* Places in a program of a language: what its runtime calls a program point, with the names that reports and traces show for it.
 *
 * 1. A place is never forgotten: histories and reports may name it at any time. It is written once, before its address is given away.
 * 2. As a return address has the call before it, so the pc of a place is its address plus 1.
 */
#include "guest/embed.h"

#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/report_parts.h"
#include "guest/spin.h"
#include "guest/system.h"
#include "guest/tap.h"

#define MOST (1u << 24)

struct place {
    const char *function, *file;
    uint64_t line;
};

static uint32_t lock; /* of the two below, while they are changed */
static struct place *places;
static uint32_t count; /* atomic: those below it are complete */

RF_EXPORT const void *redflag_rt_place(const char *function, const char *file, unsigned line);
RF_EXPORT void redflag_rt_call(const void *place);
RF_EXPORT void redflag_rt_return(void);

uintptr_t rf_embed_place(const void *place, uintptr_t pc)
{
    return place ? (uintptr_t)place + 1 : pc;
}

bool rf_place_name(uintptr_t pc, const char **function, const char **file, uint32_t *line)
{
    uintptr_t offset = pc - 1 - (uintptr_t)places;
    if (offset >= __atomic_load_n(&count, __ATOMIC_ACQUIRE) * sizeof *places || offset % sizeof *places)
        return false;
    const struct place *place = &places[offset / sizeof *places];
    *function = place->function;
    *file = place->file;
    *line = (uint32_t)place->line;
    return true;
}

static const char *copy(const char *text)
{
    size_t length = 0;
    while (text && text[length])
        length++;
    char *own = rf_take(length + 1);
    for (size_t i = 0; i < length; i++)
        own[i] = text[i];
    return own;
}

const void *redflag_rt_place(const char *function, const char *file, unsigned line)
{
    struct rf_embed embed = rf_embed_enter();
    struct place *place = NULL;
    if (embed.self) {
        rf_busy_begin(embed.self);
        rf_spin_lock(&lock);
        if (!places && !(places = rf_reserve(MOST * sizeof *places)))
            rf_die("redflag_place: no addresses for the places of a program");
        if (count < MOST) {
            place = &places[count];
            *place = (struct place){ copy(function), copy(file), line };
            __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
        }
        rf_spin_unlock(&lock);
        if (place && rf_tap && rf_tap->named)
            rf_tap->named((uintptr_t)place + 1, place->function, place->file, line);
        rf_busy_end(embed.self);
    }
    rf_embed_leave(&embed);
    return place;
}

/* Frames of the language lie between those of the runtime's own functions. */
void redflag_rt_call(const void *place)
{
    struct rf_self *self = rf_started ? rf_self() : NULL;
    if (!self || self->inside || rf_hot.top + 1 >= self->frames_end)
        return;
    struct rf_frame *frame = rf_hot.top++;
    frame->pc = rf_embed_place(place, (uintptr_t)__builtin_return_address(0));
    frame->node = 0;
    frame->sp = (uint32_t)(uintptr_t)__builtin_frame_address(0);
}

void redflag_rt_return(void)
{
    struct rf_self *self = rf_started ? rf_self() : NULL;
    if (self && !self->inside)
        rf_hot.top--;
}
