/* The detector of Go programs against a model: full vector clocks, and for every byte and goroutine its last write and last read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "go/race.c"

const struct rf_online *const rf_go_other = NULL;

#define GOROUTINES 4
#define OBJECTS 3
#define GRANULE UINT64_C(0xc000001000)
#define SHARED(i) (UINT64_C(0xc000002000) + 8 * (i))
#define SEQUENCES 60000

static struct model {
    struct goroutine *g;
    uint32_t clock[GOROUTINES], time;
    uint32_t write[8], read[8];          /* model times of its last accesses to each byte; 0: none */
    rf_epoch written[8], was_read[8];    /* and its epochs then */
} model[GOROUTINES];
static uint32_t object_clock[OBJECTS][GOROUTINES];

static uint64_t seed;

static unsigned pick(unsigned below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(seed >> 33) % below;
}

/* Does an access of goroutine i to these bytes race? */
static bool model_races(unsigned i, unsigned mask, bool write)
{
    for (unsigned byte = 0; byte < 8; byte++)
        for (unsigned j = 0; (mask >> byte & 1) && j < GOROUTINES; j++)
            if (j != i && (model[j].write[byte] > model[i].clock[j] || (write && model[j].read[byte] > model[i].clock[j])))
                return true;
    return false;
}

/* Is this epoch one that it races with? */
static bool model_names(unsigned i, unsigned mask, bool write, rf_epoch epoch, bool wrote)
{
    for (unsigned byte = 0; byte < 8; byte++)
        for (unsigned j = 0; (mask >> byte & 1) && j < GOROUTINES; j++) {
            if (j == i)
                continue;
            if (wrote && model[j].written[byte] == epoch && model[j].write[byte] > model[i].clock[j])
                return true;
            if (!wrote && write && model[j].was_read[byte] == epoch && model[j].read[byte] > model[i].clock[j])
                return true;
        }
    return false;
}

static bool engine_access(struct goroutine *g, unsigned from, unsigned size, bool write, uintptr_t pc, struct step *step)
{
    unsigned mask = ((1u << size) - 1) << from;
    step->race = 0;
    struct cell *cell = cell_of(GRANULE);
    if (size == 1 && pc % 2 && flags_for_short(cell->w, cell->r, from, write) != UINT64_MAX && !(cell->r & RF_TAG) &&
        view_knows(&g->view, cell->r)) {
        assert_true(step_shortly(g, cell, cell->w, cell->r, from, place_here(g, pc), write));
        return false;
    }
    if (size == 1 && access_repeats(g, GRANULE + from, write))
        return false;
    if (size == 1 && step_on_byte(g, cell, from, place_here(g, pc), write))
        return false;
    step_with(step, g, write, place_here(g, pc));
    access_granule(step, cell_of(GRANULE), mask);
    return step->race != 0;
}

static void order(unsigned i)
{
    unsigned object = pick(OBJECTS), kind = pick(4);
    uint32_t *clock = model[i].clock, *known = object_clock[object], old[GOROUTINES];
    memcpy(old, known, sizeof old);
    clock[i] = model[i].time;
    if (kind == 0)
        __tsan_acquire(model[i].g, SHARED(object));
    else if (kind == 1)
        __tsan_release(model[i].g, SHARED(object));
    else if (kind == 2)
        __tsan_release_merge(model[i].g, SHARED(object));
    else
        __tsan_release_acquire(model[i].g, SHARED(object));
    for (unsigned j = 0; j < GOROUTINES; j++) {
        if (kind == 1 || kind == 3)
            known[j] = clock[j];
        if (kind == 2 && known[j] < clock[j])
            known[j] = clock[j];
        if ((kind == 0 || kind == 3) && clock[j] < old[j])
            clock[j] = old[j];
    }
    if (kind)
        model[i].time++;
}

static void begin(void)
{
    __tsan_malloc(NULL, 0, GRANULE, 8);
    for (unsigned i = 0; i < OBJECTS; i++)
        __tsan_free(SHARED(i), 8);
    memset(object_clock, 0, sizeof object_clock);
    memset(model, 0, sizeof model);
    struct goroutine *first = goroutine_begin(NULL, 0);
    for (unsigned i = 0; i < GOROUTINES; i++) {
        model[i].g = goroutine_begin(first, 100 + i);
        model[i].time = 1;
        frame_push(model[i].g, 7);
    }
    goroutine_end(first);
}

static void run_sequence(unsigned length)
{
    begin();
    for (unsigned n = 0; n < length; n++) {
        unsigned i = pick(GOROUTINES), from = 0, size = 8, kind = pick(8);
        struct goroutine *g = model[i].g;
        struct step step;
        if (kind < 3) {
            order(i);
            continue;
        }
        if (kind == 3 && pick(4) == 0) { /* a part of the memory is new */
            unsigned start = pick(8), bytes = 1 + pick(8 - start);
            __tsan_malloc(NULL, 0, GRANULE + start, bytes);
            for (unsigned byte = start; byte < start + bytes; byte++)
                for (unsigned j = 0; j < GOROUTINES; j++) {
                    model[j].write[byte] = model[j].read[byte] = 0;
                    model[j].written[byte] = model[j].was_read[byte] = 0;
                }
            continue;
        }
        if (kind < 6) {
            from = pick(2) ? pick(8) : pick(2) * 4;
            size = 1;
        } else if (kind == 6) {
            from = pick(8);
            size = 1 + pick(8 - from);
        }
        bool write = pick(2);
        unsigned mask = ((1u << size) - 1) << from;
        bool expected = model_races(i, mask, write);
        bool found = engine_access(g, from, size, write, 1000 + pick(2), &step);
        if (expected != found)
            fail_msg("sequence %llu, step %u: goroutine %u, bytes %u+%u, %s: %s", (unsigned long long)seed, n, i, from, size,
                     write ? "write" : "read", expected ? "missed" : "false");
        if (found) {
            assert_true(model_names(i, mask, write, step.race, step.race_writes));
            break;
        }
        for (unsigned byte = from; byte < from + size; byte++) {
            uint32_t *time = write ? model[i].write : model[i].read;
            rf_epoch *epochs = write ? model[i].written : model[i].was_read;
            time[byte] = model[i].time;
            epochs[byte] = g->now;
        }
    }
    for (unsigned i = 0; i < GOROUTINES; i++)
        goroutine_end(model[i].g);
}

/* In the second half others live beside them, so that clocks are too long to be copied, and are shared. */
static void same_as_the_model(void **state)
{
    (void)state;
    struct goroutine *beside[2 * SHORT_TIMES];
    for (unsigned i = 0; i < SEQUENCES; i++) {
        for (unsigned j = 0; i == SEQUENCES / 2 && j < 2 * SHORT_TIMES; j++)
            beside[j] = goroutine_begin(NULL, 0);
        seed = i * UINT64_C(0x9e3779b97f4a7c15) + 1;
        run_sequence(40);
    }
    for (unsigned j = 0; j < 2 * SHORT_TIMES; j++)
        goroutine_end(beside[j]);
}

/* Many goroutines, all of whose ends are known, or not: slots are used again, and a sweep finds those that no history names. */
static void slots_are_used_again(void **state)
{
    (void)state;
    __tsan_malloc(NULL, 0, GRANULE, 8);
    struct goroutine *parent = goroutine_begin(NULL, 0);
    uint32_t before = slot_count;
    for (unsigned i = 0; i < 20000; i++) {
        struct goroutine *child = goroutine_begin(parent, 1);
        struct step step;
        assert_false(engine_access(child, 0, 8, true, 2, &step));
        __tsan_release(child, SHARED(0));
        __tsan_acquire(parent, SHARED(0));
        goroutine_end(child);
    }
    assert_true(slot_count <= before + 1);
    for (unsigned i = 0; i < 20000; i++) { /* nobody hears of their ends, and their memory is freed */
        struct goroutine *child = goroutine_begin(parent, 1);
        struct step step;
        __tsan_malloc(NULL, 0, GRANULE, 8);
        assert_false(engine_access(child, 0, 8, true, 2, &step));
        goroutine_end(child);
    }
    assert_true(slot_count <= 512);
    __tsan_malloc(NULL, 0, GRANULE, 8);
    goroutine_end(parent);
}

/* Nothing is known of any address. */
static void no_symbols(uintptr_t command, void *context)
{
    (void)command, (void)context;
}

/* An atomic operation and a plain access race, two atomic ones do not. */
static void atomics_have_a_history(void **state)
{
    (void)state;
    begin();
    struct goroutine *a = model[0].g, *b = model[1].g;
    struct step step;
    uint64_t before = report_count, value = 0;
    struct atomic at;
    for (int i = 0; i < 2; i++) {
        atomic_begin(&at, i ? b : a, 5, 5, 4, GRANULE, 8, true);
        value++;
        atomic_end(&at, true, false, true); /* stores: neither knows the other */
        assert_int_equal(at.step.race, 0);
    }
    assert_true(engine_access(model[2].g, 0, 1, false, 6, &step));
    assert_true(step.race_writes);
    __tsan_acquire(model[3].g, GRANULE);
    assert_true(engine_access(model[3].g, 0, 8, true, 6, &step)); /* it has acquired b's store, not a's */
    assert_int_equal(report_count, before);
    for (unsigned i = 0; i < GOROUTINES; i++)
        goroutine_end(model[i].g);
}

/* Atomic operations that order nothing, and what plain accesses would meet of them. */
static void stamps_sequence(void)
{
    begin();
    for (unsigned n = 0; n < 60; n++) {
        unsigned i = pick(GOROUTINES), kind = pick(8);
        struct goroutine *g = model[i].g;
        bool write = pick(2);
        if (kind < 3) {
            order(i);
        } else if (kind < 6) {
            struct atomic at;
            atomic_begin(&at, g, 5, 5, 4, GRANULE, 8, write);
            atomic_end(&at, write, false, false);
            *(write ? model[i].write : model[i].read) = model[i].time;
        } else {
            uint32_t *lock;
            struct step step;
            const struct object *object = object_lock(cell_of(GRANULE), GRANULE, &lock);
            step_with(&step, g, write, 0);
            step_against_stamps(&step, object, 1);
            spin_unlock(lock);
            assert_int_equal(step.race != 0, object->size && model_races(i, 1, write));
        }
    }
    for (unsigned i = 0; i < GOROUTINES; i++)
        goroutine_end(model[i].g);
}

static void stamps_are_as_in_the_model(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        seed = i * UINT64_C(0x9e3779b97f4a7c15) + 3;
        stamps_sequence();
    }
}

/* An operation that begins an epoch, as somebody has learned of the present one, and learns nothing, is handed on with what it releases. */
static void atomics_are_handed_on(void **state)
{
    (void)state;
    begin();
    struct goroutine *a = model[0].g, *b = model[1].g;
    struct step step;
    struct atomic at;
    for (int i = 0; i < 2; i++) {
        atomic_begin(&at, a, 5, 5, 4, GRANULE, 8, true);
        atomic_end(&at, true, true, true);
        __tsan_finalizer_goroutine(model[2].g);
    }
    __tsan_acquire(b, GRANULE);
    assert_false(engine_access(b, 0, 8, true, 6, &step));
    for (unsigned i = 0; i < GOROUTINES; i++)
        goroutine_end(model[i].g);
}

/* Times run out: the goroutine goes on under another slot, and what it did before is its past. */
static void times_run_out(void **state)
{
    (void)state;
    begin();
    struct goroutine *a = model[0].g, *b = model[1].g;
    struct step step;
    assert_false(engine_access(a, 0, 8, true, 2, &step));
    uint32_t slot = goroutine_slot(a);
    spin_lock(&slots_lock);
    a->view.own = a->now = epoch_make(slot, RF_TIME_LIMIT);
    spin_unlock(&slots_lock);
    assert_false(engine_access(a, 0, 8, true, 2, &step));
    __tsan_release(a, SHARED(0));
    assert_int_not_equal(goroutine_slot(a), slot);
    assert_false(engine_access(a, 0, 8, true, 2, &step));
    __tsan_release(a, SHARED(1));
    __tsan_acquire(b, SHARED(1));
    assert_false(engine_access(b, 0, 8, true, 2, &step));
    assert_true(engine_access(a, 0, 8, true, 2, &step));
    for (unsigned i = 0; i < GOROUTINES; i++)
        goroutine_end(model[i].g);
}

static int start(void **state)
{
    struct goroutine *first;
    void *processor;
    (void)state;
    __tsan_init(&first, &processor, NULL);
    go_callback = no_symbols;
    __tsan_map_shadow(UINT64_C(0xc000000000), 1 << 20);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_the_model),
        cmocka_unit_test(slots_are_used_again),
        cmocka_unit_test(atomics_have_a_history),
        cmocka_unit_test(atomics_are_handed_on),
        cmocka_unit_test(stamps_are_as_in_the_model),
        cmocka_unit_test(times_run_out),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
