/* See cli/caper_facts.h. */
#include "cli/caper_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

enum { ANY, STACK, FIRST_NUMBER };
enum { ESCAPED = 1, UNSEEN = 2 }; /* of a kind */

struct fact {
    char *place;           /* FILE:LINE */
    char what;             /* 'r', 'w', 'p': a write that may publish, 'm': made, 'c': a call accesses */
    uint32_t first, count; /* its kinds */
};

struct rf_facts {
    struct fact *facts; /* by place */
    size_t count, capacity;
    uint32_t *kinds;
    size_t kind_count, kind_capacity;
    uint8_t *states; /* by kind */
    size_t state_capacity;
    uint32_t most; /* kinds */
    char **files;  /* their names, in order */
    size_t file_count, file_capacity;
};

static int by_place(const void *a, const void *b)
{
    return strcmp(((const struct fact *)a)->place, ((const struct fact *)b)->place);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_kind(struct rf_facts *facts, const char *text, char **end)
{
    uint32_t kind = ANY;
    *end = (char *)(uintptr_t)text + 1;
    if (*text == 's')
        kind = STACK;
    else if (*text >= '0' && *text <= '9')
        kind = FIRST_NUMBER + (uint32_t)strtoul(text, end, 10);
    else if (*text != 'g')
        return false;
    if (kind >= (1u << 26))
        return false;
    facts->kinds = rf_reserve(facts->kinds, &facts->kind_capacity, facts->kind_count + 1, sizeof *facts->kinds);
    facts->kinds[facts->kind_count++] = kind;
    facts->most = kind >= facts->most ? kind + 1 : facts->most;
    return true;
}

/* "WORD PLACE KINDS", and "made KIND PLACE", where '-' is no kind. */
static bool add_fact(struct rf_facts *facts, char *line)
{
    char *save, *word = strtok_r(line, " \n", &save), *one = strtok_r(NULL, " \n", &save),
                *other = strtok_r(NULL, " \n", &save);
    if (!word || !one)
        return !word;
    bool made = strcmp(word, "made") == 0;
    char *place = made ? other : one, *kinds = made ? one : other;
    char what = made                           ? 'm'
                : strcmp(word, "read") == 0    ? 'r'
                : strcmp(word, "write") == 0   ? 'w'
                : strcmp(word, "publish") == 0 ? 'p'
                : strcmp(word, "call") == 0    ? 'c'
                                               : 0;
    if (!what || !place || !strrchr(place, ':'))
        return false;
    struct fact fact = { rf_check_memory(strdup(place), strlen(place)), what, (uint32_t)facts->kind_count, 0 };
    for (char *end; kinds && *kinds && strcmp(kinds, "-") != 0; kinds = *end == ',' ? end + 1 : end, fact.count++)
        if (!add_kind(facts, kinds, &end) || (*end && *end != ',')) {
            free(fact.place);
            return false;
        }
    facts->facts = rf_reserve(facts->facts, &facts->capacity, facts->count + 1, sizeof *facts->facts);
    facts->facts[facts->count++] = fact;
    return true;
}

/* The names of files, without their directories. */
static void find_files(struct rf_facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        const char *colon = strrchr(facts->facts[i].place, ':'), *name = colon;
        while (name > facts->facts[i].place && name[-1] != '/')
            name--;
        size_t length = (size_t)(colon - name);
        if (facts->file_count && strncmp(facts->files[facts->file_count - 1], name, length) == 0 &&
            !facts->files[facts->file_count - 1][length])
            continue;
        facts->files = rf_reserve(facts->files, &facts->file_capacity, facts->file_count + 1, sizeof *facts->files);
        facts->files[facts->file_count++] = rf_check_memory(strndup(name, length), length);
    }
    if (facts->file_count)
        qsort(facts->files, facts->file_count, sizeof *facts->files, by_text);
}

struct rf_facts *rf_facts_read(const char *path, const char *who)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    unsigned number = 0;
    if (!file)
        return NULL;
    struct rf_facts *facts = rf_zeroed(1, sizeof *facts);
    facts->most = FIRST_NUMBER;
    while (getline(&line, &capacity, file) > 0) {
        number++;
        if (!add_fact(facts, line)) {
            fprintf(stderr, "%s: %s:%u: no fact of redflag static\n", who, path, number);
            fclose(file);
            errno = 0;
            return NULL;
        }
    }
    free(line);
    fclose(file);
    if (facts->count)
        qsort(facts->facts, facts->count, sizeof *facts->facts, by_place);
    find_files(facts);
    facts->states = rf_zeroed(facts->most, 1);
    facts->states[ANY] = ESCAPED;
    return facts;
}

/* The facts of FILE:LINE, whatever column is behind it. */
static const struct fact *facts_of(const struct rf_facts *facts, const char *place, size_t *count)
{
    char text[4352];
    const char *colon = strrchr(place, ':');
    for (const char *at = place; (at = strchr(at, ':')) != NULL && at != colon; at++)
        if (at[1] >= '0' && at[1] <= '9' && strspn(at + 1, "0123456789") == (size_t)(colon - at - 1)) { /* LINE:COLUMN */
            snprintf(text, sizeof text, "%.*s", (int)(colon - place), place);
            place = text;
            break;
        }
    size_t low = 0, high = facts->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(facts->facts[middle].place, place) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < facts->count && strcmp(facts->facts[low + *count].place, place) == 0; ++*count) {
    }
    return facts->facts + low;
}

/* Are there facts of a file of that name, wherever it lies? Who compiled it elsewhere names it otherwise. */
static bool is_program(const struct rf_facts *facts, const char *place)
{
    const char *colon = strrchr(place, ':');
    char *name = rf_check_memory(strndup(place, colon ? (size_t)(colon - place) : 0), 1), *slash = strrchr(name, '/');
    char *key = slash ? slash + 1 : name;
    bool found = bsearch(&key, facts->files, facts->file_count, sizeof key, by_text) != NULL;
    free(name);
    return found;
}

void rf_facts_escapes(struct rf_facts *facts, const char *place, bool unseen)
{
    size_t count;
    uint8_t state = unseen ? ESCAPED | UNSEEN : ESCAPED;
    bool known = false;
    if (!place) {
        facts->states[STACK] |= state;
        return;
    }
    const struct fact *found = facts_of(facts, place, &count);
    for (size_t i = 0; i < count; i++) {
        known |= found[i].what == 'm';
        for (uint32_t j = 0; found[i].what == 'm' && j < found[i].count; j++)
            facts->states[facts->kinds[found[i].first + j]] |= state;
    }
    if (!*place || (!known && is_program(facts, place)))
        for (uint32_t kind = FIRST_NUMBER; kind < facts->most; kind++)
            facts->states[kind] |= state;
}

enum rf_fact rf_facts_access(const struct rf_facts *facts, const char *place, char what, bool unseen)
{
    size_t count;
    const struct fact *found = facts_of(facts, place, &count);
    enum rf_fact answer = RF_FACT_NOT_KNOWN;
    for (size_t i = 0; i < count; i++) {
        if (found[i].what == 'm' || found[i].what == 'c' || (what == 'r' && found[i].what != 'r') ||
            (what == 'w' && found[i].what == 'r'))
            continue;
        if (answer == RF_FACT_NOT_KNOWN)
            answer = RF_FACT_CANNOT;
        for (uint32_t j = 0; j < found[i].count; j++)
            if (facts->states[facts->kinds[found[i].first + j]] & (unseen ? UNSEEN : ESCAPED))
                return RF_FACT_MAY;
    }
    return answer;
}

bool rf_facts_calls(const struct rf_facts *facts, const char *place)
{
    size_t count;
    const struct fact *found = facts_of(facts, place, &count);
    bool calls = !count; /* nothing is known of it */
    for (size_t i = 0; i < count; i++)
        calls |= found[i].what == 'c';
    return calls;
}

enum rf_fact rf_facts_publish(const struct rf_facts *facts, const char *place)
{
    size_t count;
    const struct fact *found = facts_of(facts, place, &count);
    enum rf_fact answer = RF_FACT_NOT_KNOWN;
    for (size_t i = 0; i < count; i++) {
        if (found[i].what == 'p')
            return RF_FACT_MAY;
        if (found[i].what == 'w')
            answer = RF_FACT_CANNOT;
    }
    return answer;
}
