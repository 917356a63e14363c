/* Which reports are the same from run to run: see report/writers.h. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "report/writers.h"

#define FRAMES                                                                                                              \
    3 /* of the program, inlined ones included: enough to tell callers apart, few enough to survive changes far away */

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

static uint64_t mix(uint64_t hash, const char *text)
{
    return XXH64(text, strlen(text), hash);
}

static uint64_t stack_hash(const struct rf_stack *stack, const char *what)
{
    uint64_t hash = mix(1, what);
    uint32_t frames = 0;
    for (uint32_t i = 0; i < stack->frame_count && frames < FRAMES; i++) {
        const struct rf_symbol *frame = &stack->frames[i];
        hash = mix(hash, frame->function ? frame->function : "?");
        if (!frame->runtime) { /* #0 memcpy counts, but not as one of the three */
            hash = mix(hash, base_name(frame->file ? frame->file : frame->module));
            frames++;
        }
    }
    return hash;
}

uint64_t rf_fingerprint(const struct rf_record *record)
{
    uint64_t hash = mix(0, rf_kinds[record->kind].id), sum = 0;
    /* A sum does not depend on which of two came first. */
    for (uint32_t i = 0; i < record->access_count; i++)
        sum += stack_hash(&record->accesses[i].stack, rf_access_words(record->accesses[i].flags, false));
    for (uint32_t i = 0; i < record->stack_count && !record->access_count && i < 1; i++)
        sum += stack_hash(&record->stacks[i], "stack");
    for (uint32_t i = 0; i < record->step_count; i++)
        sum += stack_hash(&record->steps[i].wanted_at, "step");
    if (record->kind == RF_K_THREAD_LEAK && record->thread_count)
        sum += stack_hash(&record->threads[0].stack, "thread");
    hash = mix(hash, rf_location_names[record->location.kind]);
    if (record->location.kind == RF_AT_GLOBAL && record->location.name)
        hash = mix(hash, record->location.name);
    return XXH64(&sum, sizeof sum, hash);
}

const struct rf_stack *rf_record_main_stack(const struct rf_record *record)
{
    static const struct rf_stack none;
    if (record->access_count)
        return &record->accesses[0].stack;
    if (record->step_count)
        return &record->steps[0].wanted_at;
    if (record->stack_count)
        return &record->stacks[0];
    return record->thread_count ? &record->threads[0].stack : &none;
}
