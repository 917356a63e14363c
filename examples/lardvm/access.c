/* What the program does to memory, as it is told to redflag, and nothing else that the machine does.
 *
 * 1. The access itself is made by functions that no compiler instruments: an access that is told is not seen a second time.
 * 2. A volatile field's value and clock are replaced together. The clock of a write holds all that the field's clock held, and what the
 *    writer knows; it is new, and never changed once others can see it. A clock that was replaced may still be read by somebody who
 *    is between two safepoints; it is freed at the next collection (heap.c).
 */
#include <string.h>

#include "vm.h"

#define UNSEEN __attribute__((noinline, no_sanitize("thread")))

struct settings settings;
value globals[MAX_NAMES];
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

UNSEEN static value load(const value *at)
{
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

UNSEEN static void store(value *at, value v)
{
    __atomic_store_n(at, v, __ATOMIC_RELAXED);
}

/* Replaces *at if it is *expected; else that becomes what is there. */
UNSEEN static bool swap_pair(struct pair *at, struct pair *expected, struct pair desired)
{
    bool done;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(done), "+m"(*at), "+a"(expected->value), "+d"(expected->clock)
                     : "b"(desired.value), "c"(desired.clock)
                     : "memory");
    return done;
}

static struct pair load_pair(struct pair *at)
{
    struct pair seen = { 0, NULL };
    swap_pair(at, &seen, seen); /* nothing changes, whatever is there */
    return seen;
}

/* ---- the language's trace ---- */

void tell_begin(void)
{
    if (settings.language)
        pthread_mutex_lock(&order);
}

void tell(const struct thread *self, const char *op, const char *argument, const struct instruction *at)
{
    if (!settings.language)
        return;
    char name[16] = "main";
    if (self->number)
        snprintf(name, sizeof name, "T%u", self->number);
    fprintf(settings.language, "%s|%s(%s)|", name, op, argument);
    if (at && at->place)
        fprintf(settings.language, "%s:%u %s", program.file, at->line, self->frames[self->depth - 1].function->name);
    fputc('\n', settings.language);
}

void tell_end(void)
{
    if (settings.language)
        pthread_mutex_unlock(&order);
}

const char *object_name(value object, char buffer[32])
{
    snprintf(buffer, 32, "o%u", ((const struct object *)object)->id);
    return buffer;
}

static void tell_field(const struct thread *self, const char *op, value object, const struct instruction *at)
{
    char text[128], name[32];
    if (!settings.language)
        return;
    snprintf(text, sizeof text, "%s.%s", object_name(object, name), program.names[at->a]);
    tell(self, op, text, at);
}

/* ---- accesses ---- */

static value read_place(struct thread *self, const struct instruction *at, const value *place)
{
    (void)self;
    redflag_read(place, sizeof *place, at->place);
    return load(place);
}

static void write_place(struct thread *self, const struct instruction *at, value *place, value v)
{
    (void)self;
    redflag_write(place, sizeof *place, at->place);
    store(place, v);
}

static value *field_of(struct thread *self, const struct instruction *at, value object, bool *is_volatile)
{
    struct object *o = (struct object *)object;
    if (!object || is_number(object) || o->class == ARRAY_CLASS)
        wrong(self, "this has no fields");
    const struct class *class = &program.classes[o->class];
    int word = class->place_of[at->a];
    if (word < 0)
        wrong(self, "class %s has no field %s", class->name, program.names[at->a]);
    *is_volatile = class->is_volatile[word];
    return &o->fields[word];
}

value read_field(struct thread *self, const struct instruction *at, value object)
{
    bool is_volatile;
    value *place = field_of(self, at, object, &is_volatile), v;
    tell_begin();
    if (is_volatile) {
        struct pair pair = load_pair((struct pair *)(void *)place);
        redflag_clock_write(pair.clock);
        v = pair.value;
    } else {
        v = read_place(self, at, place);
    }
    tell_field(self, is_volatile ? "vr" : "r", object, at);
    tell_end();
    return v;
}

static void write_volatile(struct pair *place, value v)
{
    struct pair seen = load_pair(place), next = { v, NULL };
    for (;;) {
        next.clock = redflag_clock_new();
        redflag_clock_join(next.clock, seen.clock);
        redflag_clock_add(next.clock);
        if (swap_pair(place, &seen, next))
            break;
        redflag_clock_free(next.clock);
    }
    retire_clock(seen.clock);
}

void write_field(struct thread *self, const struct instruction *at, value object, value v)
{
    bool is_volatile;
    value *place = field_of(self, at, object, &is_volatile);
    tell_begin();
    if (is_volatile)
        write_volatile((struct pair *)(void *)place, v);
    else
        write_place(self, at, place, v);
    tell_field(self, is_volatile ? "vw" : "w", object, at);
    tell_end();
}

static value *item_of(struct thread *self, value array, value index)
{
    struct object *o = (struct object *)array;
    if (!array || is_number(array) || o->class != ARRAY_CLASS)
        wrong(self, "this is no array");
    if (!is_number(index) || as_number(index) < 0 || as_number(index) >= o->length)
        wrong(self, "there is no such item: the array has %u", o->length);
    return &o->fields[as_number(index)];
}

static void tell_item(const struct thread *self, const char *op, value array, value index, const struct instruction *at)
{
    char text[64], name[32];
    if (!settings.language)
        return;
    snprintf(text, sizeof text, "%s[%lld]", object_name(array, name), (long long)as_number(index));
    tell(self, op, text, at);
}

value read_item(struct thread *self, const struct instruction *at, value array, value index)
{
    value *place = item_of(self, array, index);
    tell_begin();
    value v = read_place(self, at, place);
    tell_item(self, "r", array, index, at);
    tell_end();
    return v;
}

void write_item(struct thread *self, const struct instruction *at, value array, value index, value v)
{
    value *place = item_of(self, array, index);
    tell_begin();
    write_place(self, at, place, v);
    tell_item(self, "w", array, index, at);
    tell_end();
}

value read_global(struct thread *self, const struct instruction *at)
{
    tell_begin();
    value v = read_place(self, at, &globals[at->a]);
    tell(self, "r", program.globals[at->a], at);
    tell_end();
    return v;
}

void write_global(struct thread *self, const struct instruction *at, value v)
{
    tell_begin();
    write_place(self, at, &globals[at->a], v);
    tell(self, "w", program.globals[at->a], at);
    tell_end();
}
