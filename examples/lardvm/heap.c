/* The heap, and its two collectors. Both stop the world (world.c) and run as the kernel thread, not as the thread of the language that
 * ran out of memory.
 *
 * 1. Mark-sweep: the heap is a row of objects and free chunks, each with its size. What is not marked becomes a free chunk, and its
 *    history is cleared before it can be anything else (Wood, rule 3).
 * 2. Semispace: what is alive goes to the other half, and takes its history along (rule 4); then all that is left behind is cleared.
 * 3. Roots are the globals and the stacks of the threads that have not ended.
 * 4. Clocks of volatile fields, and monitors, are not in the heap: they end with their objects.
 */
#include <stdlib.h>
#include <string.h>

#include "vm.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below, while the world runs */
static enum collector kind;
static char *heap, *heap_end; /* semispace: the half in use */
static char *other;           /* ... and the other */
static char *fresh;           /* ... where the next object goes */
static struct object *chunks; /* mark-sweep: free ones, by `forward` */
static uint32_t ids;
static unsigned collection_count;

static struct redflag_clock **retired;
static size_t retired_count, retired_cap;

static size_t bytes_of(const struct object *object)
{
    return object->words * sizeof(value);
}

void heap_begin(enum collector collector, size_t bytes)
{
    kind = collector;
    bytes = bytes / 32 * 32;
    heap = aligned_alloc(16, bytes);
    other = collector == SEMISPACE ? aligned_alloc(16, bytes) : NULL;
    if (!heap || (collector == SEMISPACE && !other))
        die("no memory for a heap of %zu bytes", bytes);
    heap_end = heap + bytes;
    fresh = heap;
    if (collector == MARK_SWEEP) {
        chunks = (struct object *)(void *)heap;
        *chunks = (struct object){ .class = FREE_CHUNK, .words = (uint32_t)(bytes / sizeof(value)) };
    }
}

unsigned collections(void)
{
    return __atomic_load_n(&collection_count, __ATOMIC_RELAXED);
}

void retire_clock(struct redflag_clock *clock)
{
    if (!clock)
        return;
    pthread_mutex_lock(&lock);
    if (retired_count == retired_cap) {
        retired_cap = retired_cap ? 2 * retired_cap : 64;
        retired = realloc(retired, retired_cap * sizeof *retired);
    }
    retired[retired_count++] = clock;
    pthread_mutex_unlock(&lock);
}

/* ---- allocation ---- */

static struct object *take_chunk(unsigned words)
{
    for (struct object **link = &chunks; *link; link = &(*link)->forward) {
        struct object *chunk = *link;
        if (chunk->words < words)
            continue;
        unsigned rest = chunk->words - words;
        if (rest < HEADER_WORDS) {
            *link = chunk->forward;
            return chunk;
        }
        struct object *left = (struct object *)(void *)((value *)(void *)chunk + words);
        *left = (struct object){ .class = FREE_CHUNK, .words = rest, .forward = chunk->forward };
        *link = left;
        chunk->words = words;
        return chunk;
    }
    return NULL;
}

static struct object *try_allocate(unsigned words)
{
    struct object *object = NULL;
    pthread_mutex_lock(&lock);
    if (kind == MARK_SWEEP) {
        object = take_chunk(words);
    } else if ((size_t)(heap_end - fresh) >= words * sizeof(value)) {
        object = (struct object *)(void *)fresh;
        object->words = words;
        fresh += words * sizeof(value);
    }
    uint32_t id = object ? ++ids : 0;
    pthread_mutex_unlock(&lock);
    if (object) {
        memset(object->fields, 0, bytes_of(object) - HEADER_WORDS * sizeof(value));
        object->id = id;
        object->monitor = NULL;
        object->forward = NULL;
    }
    return object;
}

struct object *allocate(struct thread *self, uint32_t class, unsigned words, uint32_t length)
{
    words = (HEADER_WORDS + words + 1) & ~1u;
    struct object *object = try_allocate(words);
    for (unsigned tries = 0; !object && tries < 16; tries++) {
        collect();
        object = try_allocate(words);
    }
    if (!object)
        wrong(self, "out of memory");
    object->length = length;
    object->class = class;
    return object;
}

/* ---- what both collectors do ---- */

/* Calls f for every reference in the object: f may change it. */
static void each_reference(struct object *object, void (*f)(value *))
{
    unsigned count = object->class == ARRAY_CLASS ? object->length : program.classes[object->class].words;
    for (unsigned i = 0; i < count; i++) {
        f(&object->fields[i]);
        if (object->class != ARRAY_CLASS && program.classes[object->class].is_volatile[i])
            i++; /* its clock */
    }
}

static void each_root(void (*f)(value *))
{
    for (unsigned i = 0; i < program.global_count; i++)
        f(&globals[i]);
    for (unsigned i = 0; i < thread_count(); i++) {
        struct thread *thread = thread_at(i);
        for (value *v = thread->stack; v && v < thread->top; v++)
            f(v);
    }
}

static void end_object(struct object *object)
{
    free_monitor(object);
    for (unsigned i = 0; object->class != ARRAY_CLASS && i < program.classes[object->class].words; i++)
        if (program.classes[object->class].is_volatile[i])
            redflag_clock_free((struct redflag_clock *)object->fields[i + 1]);
}

/* ---- mark-sweep ---- */

static struct object **grey;
static size_t grey_count, grey_cap;

static void mark(value *v)
{
    struct object *object = (struct object *)*v;
    if (!*v || is_number(*v) || object->forward)
        return;
    object->forward = object;
    if (grey_count == grey_cap) {
        grey_cap = grey_cap ? 2 * grey_cap : 256;
        grey = realloc(grey, grey_cap * sizeof(struct object *));
    }
    grey[grey_count++] = object;
}

static void sweep(void)
{
    struct object **link = &chunks, *last = NULL;
    for (char *at = heap; at < heap_end;) {
        struct object *object = (struct object *)(void *)at;
        at += bytes_of(object);
        if (object->class != FREE_CHUNK && object->forward) {
            object->forward = NULL;
            last = NULL;
            continue;
        }
        if (object->class != FREE_CHUNK) {
            end_object(object);
            redflag_clear_history(object, bytes_of(object));
            object->class = FREE_CHUNK;
        }
        if (last) {
            last->words += object->words;
            continue;
        }
        *link = last = object;
        link = &object->forward;
    }
    *link = NULL;
}

static void mark_and_sweep(void)
{
    each_root(mark);
    while (grey_count)
        each_reference(grey[--grey_count], mark);
    sweep();
}

/* ---- semispace ---- */

static void evacuate(value *v)
{
    struct object *object = (struct object *)*v;
    if (!*v || is_number(*v))
        return;
    if (!object->forward) {
        struct object *copy = (struct object *)(void *)fresh;
        memcpy(copy, object, bytes_of(object));
        redflag_move_history(copy, object, bytes_of(object));
        fresh += bytes_of(object);
        object->forward = copy;
    }
    *v = (value)object->forward;
}

static void copy_the_living(void)
{
    char *old = heap, *old_fresh = fresh, *old_end = heap_end;
    heap = fresh = other;
    heap_end = heap + (old_end - old);
    other = old;
    each_root(evacuate);
    for (char *scan = heap; scan < fresh;) {
        struct object *object = (struct object *)(void *)scan;
        each_reference(object, evacuate);
        scan += bytes_of(object);
    }
    for (char *at = old; at < old_fresh;) {
        struct object *object = (struct object *)(void *)at;
        at += bytes_of(object);
        if (!object->forward)
            end_object(object);
    }
    redflag_clear_history(old, (size_t)(old_fresh - old));
}

/* Whoever finds the memory used up does it; if another was faster, all that is left to do is to try again. */
void collect(void)
{
    unsigned before = collections();
    struct redflag_thread *identity = redflag_thread_now();
    stop_world();
    if (collections() == before) {
        redflag_thread_run(NULL);
        if (kind == MARK_SWEEP)
            mark_and_sweep();
        else
            copy_the_living();
        for (size_t i = 0; i < retired_count; i++)
            redflag_clock_free(retired[i]);
        retired_count = 0;
        redflag_thread_run(identity);
        __atomic_store_n(&collection_count, before + 1, __ATOMIC_RELAXED);
    }
    start_world();
}
