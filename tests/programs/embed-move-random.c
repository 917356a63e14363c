// expect: race
// options: suppress_equal_stacks=0:suppress_equal_addresses=0
// seconds: 120
// Random accesses, clears, copies and moves of histories, unaligned and overlapping, by two threads of the language that nothing orders,
// beside a model that knows for each byte who read it and who wrote it. What the model says is no race must not be one, and what it
// says is must be: each round ends with such an access.
#include "tests/programs/order.h"

#include <string.h>

#include <redflag.h>

enum { ROUNDS = 150, STEPS = 120, BYTES = 96 };
static unsigned char heap[BYTES] __attribute__((aligned(8)));
static unsigned char model[BYTES]; /* 1 << thread: it has read the byte; 4 << thread: it has written it */
static int reports;
static unsigned long state = 88172645463325252ul;

void __tsan_on_report(void *report);
void __tsan_on_report(void *report)
{
    (void)report;
    reports++;
}

/* Some detectors go by other things than order, and find more or less than the model. */
static int goes_by_order(void)
{
    static const char *const others[] = { "lockset", "eraser", "racetrack", "hybrid", "none" };
    const char *options = getenv("REDFLAG_OPTIONS");
    for (unsigned i = 0; options && i < sizeof others / sizeof *others; i++)
        if (strstr(options, others[i]))
            return 0;
    return 1;
}

static unsigned below(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % n;
}

static int would_race(unsigned at, unsigned size, int thread, int write)
{
    unsigned other = 1u << (1 - thread) << 2 | (write ? 1u << (1 - thread) : 0), met = 0;
    for (unsigned i = 0; i < size; i++)
        met |= model[at + i] & other;
    return met != 0;
}

static void access_as(struct redflag_thread *const *threads, unsigned at, unsigned size, int thread, int write)
{
    redflag_thread_run(threads[thread]);
    if (write)
        redflag_write(heap + at, size, NULL);
    else
        redflag_read(heap + at, size, NULL);
    redflag_thread_run(NULL);
    for (unsigned i = 0; i < size; i++)
        model[at + i] |= (unsigned char)((write ? 4 : 1) << thread);
}

static void step(struct redflag_thread *const *threads)
{
    unsigned kind = below(12), size = 1 + below(below(2) ? 8 : 40), at = below(BYTES - size + 1), to = below(BYTES - size + 1);
    unsigned char moved[BYTES];
    if (kind == 0) {
        redflag_clear_history(heap + at, size);
        memset(model + at, 0, size);
    } else if (kind <= 2) {
        redflag_copy_history(heap + to, heap + at, size);
        memmove(model + to, model + at, size);
    } else if (kind <= 4) {
        redflag_move_history(heap + to, heap + at, size);
        memcpy(moved, model + at, size);
        memset(model + at, 0, size);
        memcpy(model + to, moved, size);
    } else {
        int thread = (int)below(2), write = (int)below(2);
        if (!would_race(at, size, thread, write))
            access_as(threads, at, size, thread, write);
    }
}

static void play(void)
{
    struct redflag_thread *threads[2] = { redflag_thread_new("a"), redflag_thread_new("b") };
    int before = reports;
    redflag_clear_history(heap, BYTES);
    memset(model, 0, BYTES);
    for (int i = 0; i < STEPS; i++)
        step(threads);
    MUST(reports == before || !goes_by_order());
    for (int tries = 0; tries < 1000; tries++) {
        unsigned size = 1 + below(8), at = below(BYTES - size + 1);
        int thread = (int)below(2), write = (int)below(2);
        if (!would_race(at, size, thread, write))
            continue;
        access_as(threads, at, size, thread, write);
        MUST(reports == before + 1 || !goes_by_order());
        break;
    }
    redflag_thread_join(threads[0]);
    redflag_thread_join(threads[1]);
}

int main(void)
{
    redflag_system_begin();
    for (int i = 0; i < ROUNDS; i++)
        play();
    redflag_system_end();
    MUST(reports > ROUNDS / 2 || !goes_by_order());
    return 0;
}
