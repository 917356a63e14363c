/* See report/suppress.h. */
#include "report/suppress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/symbols.h"

static const char *const types[] = { "race", "race_top", "thread", "mutex", "signal", "deadlock", "called_from_lib", "var" };

/* `pattern` up to `end`, from the start of the text or anywhere in it. Stars need no recursion: the last one may always be taken to
 * stand for more. */
static bool matches(const char *pattern, const char *end, const char *text)
{
    bool at_start = pattern<end && * pattern == '^', at_end = end> pattern + at_start && end[-1] == '$';
    pattern += at_start;
    end -= at_end;
    const char *star = at_start ? NULL : pattern, *again = text; /* where to go on after the last star */
    const char *p = pattern;
    for (;;) {
        if (p < end && *p == '*') {
            star = ++p;
            again = text;
        } else if (p == end && (!at_end || !*text)) {
            return true;
        } else if (p < end && *text && *p == *text) {
            p++;
            text++;
        } else if (star && *again) {
            p = star;
            text = ++again;
        } else {
            return false;
        }
    }
}

bool rf_pattern_matches(const char *pattern, const char *text)
{
    return text && matches(pattern, pattern + strlen(pattern), text);
}

static void *grow(void *list, uint32_t count, uint32_t *cap, size_t size)
{
    if (count < *cap)
        return list;
    *cap = *cap ? 2 * *cap : 16;
    list = realloc(list, *cap * size);
    if (!list) {
        fputs("redflag: out of memory for suppressions\n", stderr);
        exit(2);
    }
    return list;
}

static bool parse_line(struct rf_suppressions *all, const char *start, const char *end, const char *origin, unsigned line,
                       char error[512])
{
    while (start < end && (*start == ' ' || *start == '\t'))
        start++;
    while (end > start && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    if (start == end || *start == '#')
        return true;
    const char *colon = memchr(start, ':', (size_t)(end - start));
    if (!colon || colon + 1 == end) {
        snprintf(error, 512, "%s:%u: '%.*s' is no suppression: type:pattern is", origin, line,
                 (int)(end - start < 200 ? end - start : 200), start);
        return false;
    }
    size_t length = (size_t)(colon - start), known = 0;
    while (known < sizeof types / sizeof *types &&
           (strlen(types[known]) != length || memcmp(types[known], start, length) != 0))
        known++;
    if (known == sizeof types / sizeof *types) {
        snprintf(
            error, 512,
            "%s:%u: unknown type '%.*s': race, race_top, thread, mutex, signal, deadlock, called_from_lib and var are known",
            origin, line, (int)(length < 100 ? length : 100), start);
        return false;
    }
    all->list = grow(all->list, all->count, &all->cap, sizeof *all->list);
    all->list[all->count++] =
        (struct rf_suppression){ strndup(start, length), strndup(colon + 1, (size_t)(end - colon - 1)), origin, line, 0 };
    return true;
}

bool rf_suppressions_parse(struct rf_suppressions *all, const char *text, const char *origin, char error[512])
{
    all->origins = grow(all->origins, all->origin_count, &all->origin_cap, sizeof *all->origins);
    origin = all->origins[all->origin_count++] = strdup(origin);
    unsigned line = 1;
    for (const char *end; *text; text = *end ? end + 1 : end, line++) {
        end = strchrnul(text, '\n');
        if (!parse_line(all, text, end, origin, line, error))
            return false;
    }
    return true;
}

bool rf_suppressions_load(struct rf_suppressions *all, const char *path, char error[512])
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t length = 0, cap = 0, got = 1;
    while (file && got) {
        if (cap - length < 4096) {
            char *moved = realloc(text, cap = 2 * cap + 8192);
            if (!moved)
                break;
            text = moved;
        }
        got = fread(text + length, 1, cap - length - 1, file);
        length += got;
    }
    if (!file || got || ferror(file)) {
        snprintf(error, 512, "%s: cannot read the suppressions: %s", path, strerror(errno));
        if (file)
            fclose(file);
        free(text);
        return false;
    }
    text[length] = 0;
    fclose(file);
    bool good = strlen(text) == length;
    if (!good)
        snprintf(error, 512, "%s: not a file of suppressions: it holds a byte 0", path);
    good = good && rf_suppressions_parse(all, text, path, error);
    free(text);
    return good;
}

void rf_suppressions_free(struct rf_suppressions *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        free(all->list[i].type);
        free(all->list[i].pattern);
    }
    for (uint32_t i = 0; i < all->origin_count; i++)
        free(all->origins[i]);
    free(all->list);
    free(all->origins);
    memset(all, 0, sizeof *all);
}

static bool frame_matches(const char *pattern, const char *end, const struct rf_symbol *frame)
{
    return (frame->function && matches(pattern, end, frame->function)) ||
           (frame->file && matches(pattern, end, frame->file)) || (frame->module && matches(pattern, end, frame->module));
}

/* Invariant 3. `most`: how many frames are looked at. */
static bool stack_matches(const char *pattern, const struct rf_stack *stack, uint32_t most)
{
    uint32_t at = 0;
    for (const char *end; *pattern; pattern = *end ? end + 1 : end) {
        end = strchrnul(pattern, ';');
        while (at < stack->frame_count && at < most && !frame_matches(pattern, end, &stack->frames[at]))
            at++;
        if (at >= stack->frame_count || at >= most)
            return false;
        at++;
    }
    return true;
}

static bool any_stack_matches(const char *pattern, const struct rf_record *record)
{
    for (uint32_t i = 0; i < record->access_count; i++)
        if (stack_matches(pattern, &record->accesses[i].stack, UINT32_MAX))
            return true;
    for (uint32_t i = 0; i < record->stack_count; i++)
        if (stack_matches(pattern, &record->stacks[i], UINT32_MAX))
            return true;
    for (uint32_t i = 0; i < record->step_count; i++)
        if (stack_matches(pattern, &record->steps[i].wanted_at, UINT32_MAX) ||
            stack_matches(pattern, &record->steps[i].held_at, UINT32_MAX))
            return true;
    for (uint32_t i = 0; i < record->thread_count; i++)
        if (stack_matches(pattern, &record->threads[i].stack, UINT32_MAX))
            return true;
    return false;
}

static bool location_matches(const char *pattern, const struct rf_record *record, bool module_too)
{
    const struct rf_rec_location *location = &record->location;
    return location->kind == RF_AT_GLOBAL &&
           (rf_pattern_matches(pattern, location->name) || (module_too && rf_pattern_matches(pattern, location->module)));
}

/* An access inside a function of libc that this library called. */
static bool called_from(const char *pattern, const struct rf_record *record)
{
    for (uint32_t i = 0; i < record->access_count; i++) {
        const struct rf_stack *stack = &record->accesses[i].stack;
        if (stack->frame_count > 1 && stack->frames[0].runtime && rf_pattern_matches(pattern, stack->frames[1].module))
            return true;
    }
    return false;
}

static bool matches_report(const struct rf_suppression *one, const struct rf_record *record)
{
    const char *class = rf_kinds[record->kind].suppressed_by;
    if (strcmp(one->type, class) == 0)
        return any_stack_matches(one->pattern, record) || location_matches(one->pattern, record, true);
    if (strcmp(class, "race") != 0)
        return false;
    if (strcmp(one->type, "race_top") == 0) {
        for (uint32_t i = 0; i < record->access_count; i++)
            if (stack_matches(one->pattern, &record->accesses[i].stack, 1))
                return true;
        return false;
    }
    if (strcmp(one->type, "var") == 0)
        return location_matches(one->pattern, record, false);
    return strcmp(one->type, "called_from_lib") == 0 && called_from(one->pattern, record);
}

struct rf_suppression *rf_suppressions_match(struct rf_suppressions *all, const struct rf_record *record)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (matches_report(&all->list[i], record)) {
            all->list[i].hits++;
            return &all->list[i];
        }
    return NULL;
}
