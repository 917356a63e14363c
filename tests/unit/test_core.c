/* The parts of core/ against models too plain to be wrong: arrays instead of maps, bits instead of interned sets. */
#include "tests/harness.h"

#include "core/clock.h"
#include "core/lockset.h"
#include "core/map.h"
#include "core/memory.h"
#include "core/order.h"

static size_t pieces_out; /* pieces that were asked for and not given back */

static void *pieces(size_t bytes)
{
    void *piece = calloc(1, bytes);
    assert_non_null(piece);
    pieces_out++;
    return piece;
}

static void give_back(void *piece, size_t bytes)
{
    (void)bytes;
    pieces_out--;
    free(piece);
}

static struct rf_memory new_memory(void)
{
    pieces_out = 0;
    return (struct rf_memory){ .pieces = pieces, .give_back = give_back };
}

/* ---- memory ---- */

static void test_memory(void **state)
{
    (void)state;
    struct rf_memory memory = new_memory();
    struct {
        unsigned char *block;
        size_t size;
        unsigned char mark;
    } held[200] = { { 0 } };
    uint64_t random = 1;
    size_t bytes = 0;
    for (int step = 0; step < 20000; step++) {
        uint32_t at = random_below(&random, 200);
        if (held[at].block) { /* nobody else has written into it */
            for (size_t i = 0; i < held[at].size; i++)
                assert_int_equal(held[at].block[i], held[at].mark);
            rf_free(&memory, held[at].block, held[at].size);
            bytes -= rf_rounded(held[at].size);
            held[at].block = NULL;
        } else {
            uint32_t limit = random_below(&random, 50) ? 600 : random_below(&random, 4) ? 20000 : 1000000;
            held[at].size = 1 + random_below(&random, limit);
            held[at].mark = (unsigned char)(1 + random_below(&random, 255));
            held[at].block = rf_alloc(&memory, held[at].size);
            assert_int_equal((uintptr_t)held[at].block % 16, 0);
            for (size_t i = 0; i < held[at].size; i++)
                assert_int_equal(held[at].block[i], 0);
            memset(held[at].block, held[at].mark, held[at].size);
            bytes += rf_rounded(held[at].size);
        }
        assert_int_equal(memory.bytes, bytes);
    }
    rf_memory_end(&memory);
    assert_int_equal(pieces_out, 0);
    assert_int_equal(memory.bytes, 0);
}

static void test_size_classes(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 70000; size++) {
        size_t rounded = rf_rounded(size);
        assert_true(rounded >= size && rounded % 16 == 0);
        assert_int_equal(rf_rounded(rounded), rounded);
        assert_true(rf_class(rounded) < RF_CLASSES);
        if (size)
            assert_true(rf_rounded(size - 1) == rounded || rf_class(rf_rounded(size - 1)) + 1 == rf_class(rounded));
    }
    assert_true(rf_class(RF_PIECE / 2) < RF_CLASSES); /* the largest that is kept in a list */
}

static void test_grow(void **state)
{
    (void)state;
    struct rf_memory memory = new_memory();
    uint32_t *array = NULL, cap = 0;
    for (uint32_t need = 1; need < 3000; need++) {
        uint32_t before = cap;
        array = rf_grow(&memory, array, &cap, need, sizeof *array);
        assert_true(cap >= need);
        for (uint32_t i = before; i < cap; i++)
            assert_int_equal(array[i], 0);
        array[need - 1] = need;
    }
    for (uint32_t i = 0; i + 1 < 3000; i++)
        assert_int_equal(array[i], i + 1);
    rf_free(&memory, array, cap * sizeof *array);
    assert_int_equal(memory.bytes, 0);
    rf_memory_end(&memory);
}

/* ---- maps ---- */

/* Few keys, and half of them chosen to want one place, so that removal has to shift. */
static void test_map(void **state)
{
    (void)state;
    enum { KEYS = 160 };
    uint64_t keys[KEYS], random = 7;
    for (uint32_t i = 0; i < KEYS; i++) {
        do
            keys[i] = random_next(&random) >> random_below(&random, 60) << 8 | i; /* all different */
        while (i % 2 && (rf_hash(keys[i]) & 63) > 3);
    }
    for (int round = 0; round < 50; round++) {
        struct rf_memory memory = new_memory();
        struct rf_map map;
        uint64_t values[KEYS];
        bool there[KEYS] = { false };
        uint32_t count = 0, used = 4 + random_below(&random, KEYS - 4);
        rf_map_init(&map, &memory);
        assert_null(rf_map_find(&map, keys[0]));
        for (int step = 0; step < 2000; step++) {
            uint32_t at = random_below(&random, used);
            if (random_below(&random, 2)) {
                uint64_t *place = rf_map_at(&map, keys[at]);
                assert_int_equal(*place, there[at] ? values[at] : 0);
                count += !there[at];
                there[at] = true;
                values[at] = *place = random_next(&random);
            } else {
                assert_int_equal(rf_map_remove(&map, keys[at]), there[at]);
                count -= there[at];
                there[at] = false;
            }
            assert_int_equal(map.count, count);
            for (uint32_t i = 0; step % 16 == 0 && i < used; i++) {
                uint64_t *place = rf_map_find(&map, keys[i]);
                assert_int_equal(place != NULL, there[i]);
                if (place)
                    assert_int_equal(*place, values[i]);
            }
        }
        rf_map_end(&map);
        assert_int_equal(memory.bytes, 0);
        rf_memory_end(&memory);
    }
}

/* ---- clocks ---- */

enum { SLOTS = 40 };

static void same_clock(const struct rf_clock *clock, const uint32_t *model)
{
    for (uint32_t i = 0; i < SLOTS + 8; i++)
        assert_int_equal(rf_clock_get(clock, i), i < SLOTS ? model[i] : 0);
}

static void test_clock(void **state)
{
    (void)state;
    enum { CLOCKS = 5 };
    struct rf_memory memory = new_memory();
    struct rf_clock clocks[CLOCKS] = { { 0 } };
    uint32_t models[CLOCKS][SLOTS] = { { 0 } };
    uint64_t random = 3;
    for (int step = 0; step < 20000; step++) {
        uint32_t a = random_below(&random, CLOCKS), b = random_below(&random, CLOCKS), slot = random_below(&random, SLOTS);
        uint32_t time = random_below(&random, 50);
        bool leq = true;
        switch (random_below(&random, 8)) {
        case 0:
            if (a != b)
                rf_clock_join(&clocks[a], &memory, &clocks[b]);
            for (uint32_t i = 0; i < SLOTS; i++)
                models[a][i] = models[a][i] > models[b][i] ? models[a][i] : models[b][i];
            break;
        case 1:
            if (a != b)
                rf_clock_copy(&clocks[a], &memory, &clocks[b]);
            memmove(models[a], models[b], sizeof models[a]);
            break;
        case 2:
            if (random_below(&random, 4) == 0)
                rf_clock_end(&clocks[a], &memory);
            else
                rf_clock_clear(&clocks[a]);
            memset(models[a], 0, sizeof models[a]);
            break;
        default:
            rf_clock_set(&clocks[a], &memory, slot, time);
            models[a][slot] = time;
        }
        same_clock(&clocks[a], models[a]);
        for (uint32_t i = 0; i < SLOTS; i++)
            leq = leq && models[a][i] <= models[b][i];
        assert_int_equal(rf_clock_leq(&clocks[a], &clocks[b]), leq);
        assert_int_equal(rf_epoch_leq(rf_epoch_make(slot, time), &clocks[b]), time <= models[b][slot]);
    }
    for (uint32_t i = 0; i < CLOCKS; i++)
        rf_clock_end(&clocks[i], &memory);
    assert_int_equal(memory.bytes, 0);
    rf_memory_end(&memory);
}

static void test_epochs(void **state)
{
    (void)state;
    static const uint32_t values[] = { 0, 1, 2, 0x7fffffff, 0x80000000, UINT32_MAX };
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t j = 0; j < 6; j++) {
            rf_epoch epoch = rf_epoch_make(values[i], values[j]);
            assert_int_equal(rf_epoch_slot(epoch), values[i]);
            assert_int_equal(rf_epoch_time(epoch), values[j]);
            assert_int_equal((epoch & RF_TAG) != 0, values[i] >> 31);
        }
    struct rf_clock empty = { 0 };
    assert_true(rf_epoch_leq(0, &empty));
}

/* ---- locksets ---- */

static uint64_t bits_of(const struct rf_locksets *table, rf_lockset set)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < table->sets[set].count; i++) {
        assert_true(i == 0 || table->sets[set].locks[i - 1] < table->sets[set].locks[i]);
        bits |= UINT64_C(1) << table->sets[set].locks[i];
    }
    return bits;
}

static void test_locksets(void **state)
{
    (void)state;
    enum { SETS = 64, LOCKS = 12 };
    struct rf_memory memory = new_memory();
    static struct rf_locksets table;
    rf_locksets_init(&table, &memory);
    rf_lockset sets[SETS] = { 0 };
    uint64_t random = 5;
    for (int step = 0; step < 30000; step++) {
        uint32_t at = random_below(&random, SETS), lock = random_below(&random, LOCKS);
        rf_lockset a = sets[random_below(&random, SETS)], b = sets[random_below(&random, SETS)], result;
        uint64_t expected;
        switch (random_below(&random, 4)) {
        case 0:
            result = rf_lockset_remove(&table, a, lock);
            expected = bits_of(&table, a) & ~(UINT64_C(1) << lock);
            break;
        case 1:
            result = rf_lockset_intersect(&table, a, b);
            expected = bits_of(&table, a) & bits_of(&table, b);
            break;
        default:
            result = rf_lockset_add(&table, a, lock);
            expected = bits_of(&table, a) | UINT64_C(1) << lock;
        }
        assert_int_equal(bits_of(&table, result), expected);
        sets[at] = result;
        for (uint32_t i = 0; step % 64 == 0 && i < SETS; i++) /* equal sets have equal indices */
            assert_int_equal(sets[i] == result, bits_of(&table, sets[i]) == expected);
        assert_int_equal(rf_lockset_has(&table, result, lock), expected >> lock & 1);
        assert_int_equal(rf_lockset_disjoint(&table, a, b), !(bits_of(&table, a) & bits_of(&table, b)));
        assert_int_equal(rf_lockset_subset(&table, a, b), !(bits_of(&table, a) & ~bits_of(&table, b)));
    }
    assert_int_equal(rf_lockset_intersect(&table, sets[0], RF_ALL_LOCKS), sets[0]);
    assert_int_equal(rf_lockset_intersect(&table, RF_ALL_LOCKS, sets[0]), sets[0]);
    assert_int_equal(rf_lockset_intersect(&table, RF_ALL_LOCKS, RF_ALL_LOCKS), RF_ALL_LOCKS);
    assert_true(rf_lockset_has(&table, RF_ALL_LOCKS, 3));
    rf_memory_end(&memory);
}

static void test_held(void **state)
{
    (void)state;
    enum { LOCKS = 6 };
    struct rf_memory memory = new_memory();
    static struct rf_locksets table;
    rf_locksets_init(&table, &memory);
    struct rf_held held = { 0 };
    int depth[LOCKS][2] = { { 0 } }; /* how often a lock is held, for reading and exclusively */
    uint64_t random = 11;
    for (int step = 0; step < 20000; step++) {
        uint32_t lock = random_below(&random, LOCKS);
        bool exclusive = random_below(&random, 2);
        if (random_below(&random, 5) < 2) {
            rf_held_acquire(&held, &table, 0x1000 + lock, exclusive);
            depth[lock][exclusive]++;
        } else {
            assert_int_equal(rf_held_release(&held, &table, 0x1000 + lock, exclusive), depth[lock][exclusive] > 0);
            depth[lock][exclusive] -= depth[lock][exclusive] > 0;
        }
        uint64_t any = 0, only = 0;
        for (uint32_t i = 0; i < LOCKS; i++) {
            uint64_t bit = UINT64_C(1) << rf_lock_number(&table, 0x1000 + i);
            any |= depth[i][0] || depth[i][1] ? bit : 0;
            only |= depth[i][1] ? bit : 0;
        }
        assert_int_equal(bits_of(&table, held.any), any);
        assert_int_equal(bits_of(&table, held.exclusive), only);
    }
    rf_memory_end(&memory);
}

/* ---- order: slots and times ---- */

struct world {
    struct rf_memory memory;
    struct rf_options options;
    struct rf_engine engine;
    struct rf_order order;
};

static void world_init(struct world *w, uint32_t slot_limit, uint32_t time_limit)
{
    memset(w, 0, sizeof *w);
    w->memory = new_memory();
    w->options = (struct rf_options){ .transactions = RF_TXN_ALL, .slot_limit = slot_limit, .time_limit = time_limit };
    w->engine = (struct rf_engine){ .memory = &w->memory, .options = &w->options };
    rf_order_init(&w->order, &w->engine);
    if (slot_limit || time_limit)
        rf_order_narrow(&w->order, 8, 8);
}

static void perform(struct world *w, uint32_t thread, enum rf_op op, uint64_t addr)
{
    struct rf_event event = { .addr = addr, .thread = thread, .op = op & 0xff };
    rf_order_sync(&w->order, rf_order_thread(&w->order, thread), &event);
}

static rf_epoch now(struct world *w, uint32_t thread)
{
    return rf_order_thread(&w->order, thread)->epoch;
}

static bool knows(struct world *w, uint32_t thread, rf_epoch epoch)
{
    return rf_epoch_leq(epoch, &rf_order_thread(&w->order, thread)->clock);
}

/* A slot goes to a new thread only if the forker knows the end of the last owner. */
static void test_slots_are_reused(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 0, 0);
    perform(&w, 0, RF_FORK, 1);
    rf_epoch child = now(&w, 1);
    perform(&w, 0, RF_JOIN, 1);
    rf_epoch parent = now(&w, 0);
    perform(&w, 0, RF_FORK, 2);
    assert_int_equal(rf_epoch_slot(now(&w, 2)), rf_epoch_slot(child));
    assert_true(knows(&w, 2, child)); /* like one thread's past */
    assert_true(knows(&w, 2, parent));
    assert_false(knows(&w, 0, now(&w, 2)));
    assert_int_equal(rf_order_owner(&w.order, child), 1);
    assert_int_equal(rf_order_owner(&w.order, now(&w, 2)), 2);
    assert_int_equal(w.order.slot_count, 2);
    rf_memory_end(&w.memory);
}

/* A thread that was joined lives again: in a slot of its own, whoever has the old one now. */
static void test_threads_live_again(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 0, 0);
    perform(&w, 0, RF_FORK, 1);
    rf_epoch first = now(&w, 1);
    perform(&w, 0, RF_JOIN, 1);
    perform(&w, 0, RF_FORK, 2); /* takes over its slot */
    rf_epoch second = now(&w, 1);
    assert_int_not_equal(rf_epoch_slot(second), rf_epoch_slot(first));
    assert_true(knows(&w, 1, first));
    assert_false(knows(&w, 2, second));
    assert_false(knows(&w, 1, now(&w, 2)));
    perform(&w, 0, RF_JOIN, 1);
    perform(&w, 0, RF_JOIN, 2);
    for (uint32_t i = 0; i < 100; i++) { /* slots are not used up by it */
        perform(&w, 0, RF_FORK, 1);
        perform(&w, 0, RF_JOIN, 1);
    }
    assert_int_equal(w.order.slot_count, 3);
    assert_int_equal(rf_order_owner(&w.order, first), 1);
    assert_int_equal(rf_order_owner(&w.order, second), 1);
    rf_memory_end(&w.memory);
}

/* Whoever releases a lock without holding it does not know what others have released. */
static void test_releases_of_nobody(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 0, 0);
    rf_epoch writer = now(&w, 0), reader = now(&w, 1);
    perform(&w, 0, RF_ACQUIRE, 9);
    perform(&w, 0, RF_RELEASE, 9);
    perform(&w, 1, RF_READ_ACQUIRE, 9);
    perform(&w, 1, RF_READ_RELEASE, 9);
    perform(&w, 2, RF_RELEASE, 9);
    assert_false(knows(&w, 2, writer));
    perform(&w, 2, RF_ACQUIRE, 9);
    assert_true(knows(&w, 2, writer));
    assert_true(knows(&w, 2, reader));
    rf_memory_end(&w.memory);
}

static void test_slots_of_strangers_are_not(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 0, 0);
    perform(&w, 0, RF_FORK, 1);
    perform(&w, 0, RF_FORK, 2);
    rf_epoch ended = now(&w, 1);
    perform(&w, 0, RF_JOIN, 1);
    perform(&w, 2, RF_FORK, 3); /* thread 2 does not know that 1 has ended */
    assert_int_not_equal(rf_epoch_slot(now(&w, 3)), rf_epoch_slot(ended));
    assert_false(knows(&w, 3, ended));
    perform(&w, 0, RF_SIGNAL, 5);
    perform(&w, 2, RF_WAIT, 5);
    perform(&w, 2, RF_FORK, 4); /* now it does */
    assert_int_equal(rf_epoch_slot(now(&w, 4)), rf_epoch_slot(ended));
    assert_true(knows(&w, 4, ended));
    assert_false(knows(&w, 3, now(&w, 4)));
    rf_memory_end(&w.memory);
}

/* Times that are used up: the thread goes on in a fresh slot, and neither forgets nor invents order. */
static void test_times_run_out(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 200, 4);
    rf_epoch past[40];
    rf_epoch stranger = now(&w, 1);
    for (int i = 0; i < 40; i++) {
        past[i] = now(&w, 0);
        assert_true(rf_epoch_time(past[i]) <= 4);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(past[i], past[j]);
        perform(&w, 0, RF_ACQUIRE, 9);
        perform(&w, 0, RF_RELEASE, 9);
    }
    assert_false(w.order.overflow);
    for (int i = 0; i < 40; i++) {
        assert_true(knows(&w, 0, past[i]));
        assert_false(knows(&w, 1, past[i]));
        assert_int_equal(rf_order_owner(&w.order, past[i]), 0);
    }
    assert_false(knows(&w, 0, stranger));
    perform(&w, 1, RF_ACQUIRE, 9);
    for (int i = 0; i < 40; i++)
        assert_true(knows(&w, 1, past[i]));
    assert_false(knows(&w, 1, now(&w, 0)));
    rf_memory_end(&w.memory);
}

static void test_slots_run_out(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 3, 100);
    for (uint32_t thread = 0; thread < 3; thread++)
        rf_order_thread(&w.order, thread);
    assert_false(w.order.overflow);
    rf_order_thread(&w.order, 3);
    assert_true(w.order.overflow);
    rf_order_widen(&w.order);
    assert_false(w.order.overflow);
    rf_order_thread(&w.order, 4);
    assert_false(w.order.overflow);
    rf_memory_end(&w.memory);
}

/* Readers hand on to writers alone, and a key that is forgotten hands nothing on. */
static void test_objects(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, 0, 0);
    rf_epoch reader = now(&w, 0);
    perform(&w, 0, RF_READ_ACQUIRE, 1);
    perform(&w, 0, RF_READ_RELEASE, 1);
    perform(&w, 1, RF_READ_ACQUIRE, 1);
    assert_false(knows(&w, 1, reader));
    perform(&w, 1, RF_READ_RELEASE, 1);
    perform(&w, 2, RF_ACQUIRE, 1);
    assert_true(knows(&w, 2, reader));
    perform(&w, 2, RF_RELEASE, 1);
    perform(&w, 1, RF_READ_ACQUIRE, 1);
    assert_true(knows(&w, 1, reader)); /* through the writer */
    perform(&w, 0, RF_SIGNAL, 1);
    perform(&w, 0, RF_FORGET, 1);
    rf_epoch last = now(&w, 0);
    perform(&w, 3, RF_WAIT, 1);
    assert_false(knows(&w, 3, reader));
    perform(&w, 0, RF_SIGNAL, 1);
    perform(&w, 3, RF_WAIT, 1);
    assert_true(knows(&w, 3, last));
    rf_memory_end(&w.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_size_classes),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_locksets),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_slots_are_reused),
        cmocka_unit_test(test_threads_live_again),
        cmocka_unit_test(test_releases_of_nobody),
        cmocka_unit_test(test_slots_of_strangers_are_not),
        cmocka_unit_test(test_times_run_out),
        cmocka_unit_test(test_slots_run_out),
        cmocka_unit_test(test_objects),
    };
    return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
