/* See report/record.h. */
#include "report/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct rf_kind_facts rf_kinds[RF_KINDS] = {
#define RF_KIND(name, id, title, suppressed_by, rank, text) { id, title, suppressed_by, rank, text },
#include "report/kinds.def"
#undef RF_KIND
};

const char *const rf_location_names[RF_AT_LOCATIONS] = { "none", "heap", "freed", "global", "stack", "tls", "fd" };

/* One line that is being taken apart. */
struct line {
    char *at, *end; /* what is left of it */
    unsigned number;
    const char *wrong;      /* the first complaint */
    struct rf_stack *stack; /* where the next pc goes */
};

static void complain(struct line *line, const char *what)
{
    if (!line->wrong)
        line->wrong = what;
}

/* The next word, NULL at the end. */
static char *word(struct line *line)
{
    if (line->at >= line->end) {
        complain(line, "a field is missing");
        return NULL;
    }
    char *start = line->at, *space = memchr(start, ' ', (size_t)(line->end - start));
    char *stop = space ? space : line->end;
    *stop = 0; /* line->end is a line feed, so there is room */
    line->at = space ? space + 1 : line->end;
    if (stop == start)
        complain(line, "an empty field");
    return start;
}

static uint64_t number(struct line *line, uint64_t most)
{
    const char *text = word(line);
    uint64_t value = 0;
    if (!text || line->wrong)
        return 0;
    bool hex = text[0] == '0' && text[1] == 'x';
    const char *p = hex ? text + 2 : text;
    if (!*p)
        complain(line, "not a number");
    for (; *p; p++) {
        unsigned base = hex ? 16 : 10, digit = *p >= '0' && *p <= '9'   ? (unsigned)(*p - '0')
                                               : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
                                                                        : 99;
        if (digit >= base) {
            complain(line, "not a number");
            return 0;
        }
        if (value > (UINT64_MAX - digit) / base) {
            complain(line, "a number out of range");
            return 0;
        }
        value = value * base + digit;
    }
    if (value > most)
        complain(line, "a number out of range");
    return line->wrong ? 0 : value;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The rest of the line as text, in place. May be empty. */
static char *rest(struct line *line)
{
    static char none[1];
    if (line->at > line->end)
        return none;
    char *text = line->at, *to = text;
    for (char *p = text; p < line->end; p++) {
        if (*p != '%') {
            *to++ = *p;
            continue;
        }
        int high = line->end - p > 2 ? hex_digit(p[1]) : -1, low = high < 0 ? -1 : hex_digit(p[2]);
        if (low < 0 || high * 16 + low == 0) {
            complain(line, "a % that no two hexadecimal digits follow");
            return none;
        }
        *to++ = (char)(high * 16 + low);
        p += 2;
    }
    *to = 0;
    line->at = line->end;
    return text;
}

static bool choice(struct line *line, const char *no, const char *yes)
{
    const char *text = word(line);
    if (!text || line->wrong)
        return false;
    if (strcmp(text, yes) != 0 && strcmp(text, no) != 0)
        complain(line, "neither of two words that may stand here");
    return strcmp(text, yes) == 0;
}

/* One more element at the end of an array, zeroed. */
static void *more(void *array, uint32_t *count, uint32_t *cap, size_t size)
{
    void *list;
    memcpy(&list, array, sizeof list); /* a pointer to any type */
    if (*count == *cap) {
        uint32_t larger = *cap ? 2 * *cap : 4;
        list = realloc(list, larger * size);
        if (!list) {
            fputs("redflag: out of memory for a report\n", stderr);
            exit(2);
        }
        memcpy(array, &list, sizeof list);
        *cap = larger;
    }
    return memset((char *)list + (*count)++ * size, 0, size);
}
#define MORE(owner, list, name) more(&(owner)->list, &(owner)->name##_count, &(owner)->name##_cap, sizeof *(owner)->list)

static void copy_text(struct line *line, char *to, size_t size)
{
    const char *text = rest(line);
    size_t length = strlen(text);
    if (length >= size)
        length = size - 1;
    memcpy(to, text, length);
    to[length] = 0;
}

static void read_name(struct line *line, struct rf_record *record)
{
    struct rf_rec_name *name = MORE(record, names, name);
    name->pc = number(line, UINT64_MAX);
    name->line = (uint32_t)number(line, UINT32_MAX);
    const char *what = word(line);
    name->is_file = what && strcmp(what, "file") == 0;
    if (!what || (!name->is_file && strcmp(what, "function") != 0))
        complain(line, "a name that is neither a function's nor a file's");
    copy_text(line, name->text, sizeof name->text);
}

static void read_module(struct line *line, struct rf_record *record)
{
    struct rf_rec_module *module = MORE(record, modules, module);
    module->start = number(line, UINT64_MAX);
    module->end = number(line, UINT64_MAX);
    module->bias = number(line, UINT64_MAX);
    module->runtime = number(line, 1);
    const char *id = word(line);
    if (id && strcmp(id, "-") != 0) {
        if (strlen(id) >= sizeof module->build_id || strspn(id, "0123456789abcdef") != strlen(id))
            complain(line, "a build id that is none");
        else
            strcpy(module->build_id, id);
    }
    if (module->start > module->end)
        complain(line, "a module that ends before it starts");
    module->path = strdup(rest(line));
}

static void read_access(struct line *line, struct rf_record *record)
{
    struct rf_rec_access *access = MORE(record, accesses, access);
    access->addr = number(line, UINT64_MAX);
    access->size = number(line, UINT64_MAX);
    access->flags = (uint32_t)number(line, 63);
    access->thread = (uint32_t)number(line, UINT32_MAX);
    access->previous = choice(line, "now", "before");
    line->stack = &access->stack;
}

static void read_held(struct line *line, struct rf_record *record)
{
    if (!record->access_count) {
        complain(line, "a held lock before the first access");
        return;
    }
    struct rf_rec_access *access = &record->accesses[record->access_count - 1];
    struct rf_rec_held *held = MORE(access, held, held);
    held->lock = (uint32_t)number(line, UINT32_MAX);
    held->read = choice(line, "write", "read");
}

static void read_thread(struct line *line, struct rf_record *record)
{
    struct rf_rec_thread *thread = MORE(record, threads, thread);
    thread->number = (uint32_t)number(line, UINT32_MAX);
    thread->parent = (uint32_t)number(line, UINT32_MAX);
    thread->tid = (int32_t)number(line, INT32_MAX);
    thread->flags = (uint32_t)number(line, 15);
    copy_text(line, thread->name, sizeof thread->name);
    line->stack = &thread->stack;
}

static void read_lock(struct line *line, struct rf_record *record)
{
    struct rf_rec_lock *lock = MORE(record, locks, lock);
    lock->number = (uint32_t)number(line, UINT32_MAX);
    lock->addr = number(line, UINT64_MAX);
    line->stack = NULL;
}

static void read_step(struct line *line, struct rf_record *record)
{
    struct rf_rec_step *step = MORE(record, steps, step);
    step->held = (uint32_t)number(line, UINT32_MAX);
    step->wanted = (uint32_t)number(line, UINT32_MAX);
    step->thread = (uint32_t)number(line, UINT32_MAX);
    line->stack = NULL;
}

static void read_location(struct line *line, struct rf_record *record)
{
    struct rf_rec_location *location = &record->location;
    if (location->kind != RF_AT_NOWHERE)
        complain(line, "a second location");
    const char *kind = word(line);
    for (unsigned i = 0; kind && i < RF_AT_LOCATIONS; i++)
        if (strcmp(kind, rf_location_names[i]) == 0)
            location->kind = (enum rf_location_kind)i;
    if (location->kind == RF_AT_NOWHERE)
        complain(line, "an unknown kind of location");
    location->addr = number(line, UINT64_MAX);
    location->size = number(line, UINT64_MAX);
    location->thread = (uint32_t)number(line, UINT32_MAX);
    location->fd = (int32_t)number(line, INT32_MAX);
    copy_text(line, location->text, sizeof location->text);
    line->stack = &location->stack;
}

static void read_kind(struct line *line, struct rf_record *record)
{
    const char *id = word(line);
    for (unsigned i = 0; id && i < RF_KINDS; i++)
        if (strcmp(id, rf_kinds[i].id) == 0) {
            record->kind = (enum rf_kind)i;
            return;
        }
    complain(line, "an unknown kind");
}

static void read_report_line(struct line *line, const char *key, struct rf_record *record)
{
    struct rf_rec_lock *lock = record->lock_count ? &record->locks[record->lock_count - 1] : NULL;
    struct rf_rec_step *step = record->step_count ? &record->steps[record->step_count - 1] : NULL;
    if (strcmp(key, "pc") == 0) {
        uint64_t pc = number(line, UINT64_MAX);
        if (!line->stack)
            complain(line, "a pc that belongs to nothing");
        else
            *(uint64_t *)more(&line->stack->pcs, &line->stack->count, &line->stack->cap, sizeof pc) = pc;
    } else if (strcmp(key, "named") == 0) {
        read_name(line, record);
    } else if (strcmp(key, "module") == 0) {
        read_module(line, record);
    } else if (strcmp(key, "access") == 0) {
        read_access(line, record);
    } else if (strcmp(key, "held") == 0) {
        read_held(line, record);
    } else if (strcmp(key, "stack") == 0) {
        line->stack = MORE(record, stacks, stack);
    } else if (strcmp(key, "thread") == 0) {
        read_thread(line, record);
    } else if (strcmp(key, "lock") == 0) {
        read_lock(line, record);
    } else if (strcmp(key, "created") == 0 && lock) {
        line->stack = &lock->created;
    } else if (strcmp(key, "taken") == 0 && lock) {
        line->stack = &lock->taken;
    } else if (strcmp(key, "step") == 0) {
        read_step(line, record);
    } else if (strcmp(key, "wanted") == 0 && step) {
        line->stack = &step->wanted_at;
    } else if (strcmp(key, "before") == 0 && step) {
        line->stack = &step->held_at;
    } else if (strcmp(key, "location") == 0) {
        read_location(line, record);
    } else if (strcmp(key, "kind") == 0) {
        read_kind(line, record);
    } else if (strcmp(key, "certainty") == 0) {
        record->predicted = choice(line, "certain", "predicted");
    } else if (strcmp(key, "more") == 0) {
        record->more = (uint32_t)number(line, UINT32_MAX);
    } else if (strcmp(key, "signal") == 0) {
        record->signal = (int32_t)number(line, 128);
    } else {
        complain(line, "an unknown key");
    }
}

static void read_pair(struct line *line, struct rf_message *message, const char *name)
{
    struct rf_pair *pair = MORE(message, pairs, pair);
    pair->name = strdup(name ? name : "");
    pair->value = strdup(rest(line));
}

static void read_line(struct line *line, struct rf_message *message)
{
    const char *key = word(line);
    if (!key || line->wrong)
        return;
    if (message->type == RF_MESSAGE_REPORT)
        read_report_line(line, key, &message->record);
    else if (strcmp(key, message->type == RF_MESSAGE_FINISH ? "count" : "option") == 0)
        read_pair(line, message, word(line));
    else if (message->type == RF_MESSAGE_HELLO && strcmp(key, "suppress") == 0)
        read_pair(line, message, "suppress");
    else if (message->type == RF_MESSAGE_HELLO && strcmp(key, "pid") == 0)
        message->pid = (int32_t)number(line, INT32_MAX);
    else if (message->type == RF_MESSAGE_HELLO && strcmp(key, "resumed") == 0)
        message->resumed = number(line, 1);
    else
        complain(line, "an unknown key");
    if (line->at < line->end)
        complain(line, "a field too many");
}

static void read_first_line(struct line *line, struct rf_message *message)
{
    static const char *const types[] = { "hello", "report", "finish" };
    const char *name = word(line);
    if (!name || strcmp(name, "redflag") != 0)
        complain(line, "not a message of redflag");
    if (number(line, UINT32_MAX) != RF_WIRE_VERSION)
        complain(line, "another version of the runtime");
    const char *type = word(line);
    for (unsigned i = 0; type && i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0) {
            message->type = (enum rf_message_type)i;
            if (line->at < line->end)
                complain(line, "a field too many");
            return;
        }
    complain(line, "an unknown type of message");
}

bool rf_message_read(struct rf_message *message, char *text, size_t length, char error[160])
{
    struct line line = { text, text, 0, NULL, NULL };
    bool ended = false;
    memset(message, 0, sizeof *message);
    for (char *at = text, *stop = text + length; at < stop && !ended && !line.wrong;) {
        char *feed = memchr(at, '\n', (size_t)(stop - at));
        line.number++;
        if (!feed) {
            complain(&line, "a line without an end");
            break;
        }
        line.at = at;
        line.end = feed;
        if (memchr(at, 0, (size_t)(feed - at)))
            complain(&line, "a byte 0");
        else if (line.number == 1)
            read_first_line(&line, message);
        else if (feed - at == 3 && memcmp(at, "end", 3) == 0)
            ended = true;
        else
            read_line(&line, message);
        at = feed + 1;
        if (ended && at != stop)
            complain(&line, "something after the end");
    }
    if (!ended)
        complain(&line, "no end");
    if (!line.wrong)
        return true;
    snprintf(error, 160, "line %u of a record: %s", line.number, line.wrong);
    rf_message_free(message);
    return false;
}

static void free_stack(struct rf_stack *stack)
{
    free(stack->pcs);
    free(stack->frames);
}

void rf_message_free(struct rf_message *message)
{
    struct rf_record *record = &message->record;
    for (uint32_t i = 0; i < message->pair_count; i++) {
        free(message->pairs[i].name);
        free(message->pairs[i].value);
    }
    free(message->pairs);
    for (uint32_t i = 0; i < record->access_count; i++) {
        free(record->accesses[i].held);
        free_stack(&record->accesses[i].stack);
    }
    for (uint32_t i = 0; i < record->stack_count; i++)
        free_stack(&record->stacks[i]);
    for (uint32_t i = 0; i < record->thread_count; i++)
        free_stack(&record->threads[i].stack);
    for (uint32_t i = 0; i < record->lock_count; i++) {
        free_stack(&record->locks[i].created);
        free_stack(&record->locks[i].taken);
    }
    for (uint32_t i = 0; i < record->step_count; i++) {
        free_stack(&record->steps[i].wanted_at);
        free_stack(&record->steps[i].held_at);
    }
    for (uint32_t i = 0; i < record->module_count; i++)
        free(record->modules[i].path);
    free_stack(&record->location.stack);
    free(record->accesses);
    free(record->stacks);
    free(record->threads);
    free(record->locks);
    free(record->steps);
    free(record->modules);
    free(record->names);
    memset(message, 0, sizeof *message);
}

const struct rf_rec_thread *rf_record_thread(const struct rf_record *record, uint32_t number_of)
{
    for (uint32_t i = 0; i < record->thread_count; i++)
        if (record->threads[i].number == number_of)
            return &record->threads[i];
    return NULL;
}
