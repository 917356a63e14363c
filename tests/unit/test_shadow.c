/* The shadow against the plainest model there is: one value for every byte. A cell holds one value; splitting copies it. */
#include "tests/harness.h"

#include "shadow/shadow.h"

#define SPAN (3 * RF_PAGE) /* bytes of addresses that are used */
#define BASE (UINT64_C(5) << RF_PAGE_BITS)

/* As detectors' cells are: a part of it refers to a record that must have one owner. */
struct cell {
    uint64_t value;
    uint64_t *record; /* holds the value once more; NULL while the value is 0 */
};

struct bench {
    struct rf_memory memory;
    struct rf_shadow shadow;
    uint64_t model[SPAN];
    uint64_t records; /* in use */
    uint64_t random, next;
};

static void *pieces(size_t bytes)
{
    void *piece = calloc(1, bytes);
    assert_non_null(piece);
    return piece;
}

static void give_back(void *piece, size_t bytes)
{
    (void)bytes;
    free(piece);
}

static void bench_init(struct bench *b, uint64_t seed)
{
    memset(b, 0, sizeof *b);
    b->memory = (struct rf_memory){ .pieces = pieces, .give_back = give_back };
    rf_shadow_init(&b->shadow, &b->memory, sizeof(struct cell));
    b->random = seed;
    b->next = 1;
}

static void cell_copy(void *context, void *to, const void *from)
{
    struct bench *b = context;
    const struct cell *source = from;
    struct cell *target = to;
    assert_true(target->value == 0 && target->record == NULL);
    *target = *source;
    if (source->record) {
        target->record = rf_alloc(&b->memory, sizeof *target->record);
        *target->record = *source->record;
        b->records++;
    }
}

static void cell_set(struct bench *b, struct cell *cell, uint64_t value)
{
    if (cell->record) {
        assert_int_equal(*cell->record, cell->value);
        rf_free(&b->memory, cell->record, sizeof *cell->record);
        b->records--;
    }
    *cell = (struct cell){ value, NULL };
    if (value) {
        cell->record = rf_alloc(&b->memory, sizeof *cell->record);
        *cell->record = value;
        b->records++;
    }
}

/* Sets [addr, addr + size), inside a granule, as run.inc reaches its cells. */
static void set_range(struct bench *b, uint64_t addr, unsigned size, uint64_t value)
{
    struct rf_page *page = rf_shadow_page(&b->shadow, addr);
    char *whole = rf_shadow_whole(&b->shadow, addr);
    if (size == RF_GRANULE && whole) {
        cell_set(b, (struct cell *)(void *)whole + rf_page_index(addr), value);
    } else {
        struct rf_cells cells = rf_shadow_parts(&b->shadow, page, addr, size, cell_copy, b);
        assert_int_equal(cells.count * cells.width, size);
        for (unsigned i = 0; i < cells.count; i++)
            cell_set(b, (struct cell *)(void *)cells.first + i, value);
    }
    for (unsigned i = 0; i < size; i++)
        b->model[addr - BASE + i] = value;
}

/* What the shadow holds for a byte, without splitting anything. */
static uint64_t value_at(struct bench *b, uint64_t addr)
{
    const struct rf_page *page = rf_shadow_existing(&b->shadow, addr);
    if (!page)
        return 0;
    uintptr_t parts = page->split ? page->split[rf_page_index(addr)] : 0;
    const struct cell *cell = (const struct cell *)(void *)page->cells + rf_page_index(addr);
    if (parts)
        cell = (const struct cell *)(void *)rf_parts_cells(parts) + addr % RF_GRANULE * rf_parts_count(parts) / RF_GRANULE;
    assert_true(cell->value ? *cell->record == cell->value : !cell->record);
    return cell->value;
}

static void compare(struct bench *b)
{
    for (uint32_t i = 0; i < SPAN; i++)
        if (value_at(b, BASE + i) != b->model[i])
            fail_msg("byte %u is %llu, not %llu", i, (unsigned long long)value_at(b, BASE + i),
                     (unsigned long long)b->model[i]);
}

/* A few places only, some at the edges of pages, so that splits meet. */
static uint64_t some_granule(struct bench *b)
{
    static const uint32_t places[] = { 0, 8, 16, RF_PAGE - 8, RF_PAGE, RF_PAGE + 64, 2 * RF_PAGE - 8, 3 * RF_PAGE - 8 };
    return BASE + places[random_below(&b->random, sizeof places / sizeof places[0])];
}

static void clear_granule(struct bench *b, uint64_t addr)
{
    if (!rf_shadow_existing(&b->shadow, addr))
        return;
    set_range(b, addr, RF_GRANULE, 0);
    rf_shadow_unsplit(&b->shadow, rf_shadow_page(&b->shadow, addr), addr);
}

static void random_step(struct bench *b)
{
    uint64_t granule = some_granule(b), value = random_below(&b->random, 4) ? b->next++ : 0;
    unsigned offset = random_below(&b->random, RF_GRANULE);
    switch (random_below(&b->random, 5)) {
    case 0:
        set_range(b, granule, RF_GRANULE, value);
        break;
    case 1:
        set_range(b, granule + offset / 4 * 4, 4, value);
        break;
    case 2:
    case 3:
        set_range(b, granule + offset, 1 + random_below(&b->random, RF_GRANULE - offset), value);
        break;
    default:
        clear_granule(b, granule);
    }
}

static void test_against_bytes(void **state)
{
    (void)state;
    static struct bench b;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        bench_init(&b, seed);
        for (int step = 0; step < 200; step++) {
            random_step(&b);
            if (step % 20 == 19)
                compare(&b);
        }
        /* every record has one owner: clearing all gives each back, once */
        for (uint64_t addr = BASE; addr < BASE + SPAN; addr += RF_GRANULE)
            clear_granule(&b, addr);
        assert_int_equal(b.records, 0);
        rf_memory_end(&b.memory);
    }
}

static void test_pages_appear_when_they_are_used(void **state)
{
    (void)state;
    static struct bench b;
    bench_init(&b, 1);
    assert_null(rf_shadow_existing(&b.shadow, BASE));
    assert_null(rf_shadow_whole(&b.shadow, BASE));
    struct rf_page *page = rf_shadow_page(&b.shadow, BASE + 100);
    assert_ptr_equal(rf_shadow_existing(&b.shadow, BASE), page);
    assert_ptr_equal(rf_shadow_whole(&b.shadow, BASE), page->cells);
    assert_null(rf_shadow_existing(&b.shadow, BASE + RF_PAGE));
    assert_int_equal(b.shadow.page_count, 1);
    rf_memory_end(&b.memory);
}

/* Pages that want the same place at hand: each is found again, with what it had. */
static void test_pages_that_share_a_place(void **state)
{
    (void)state;
    static struct bench b;
    bench_init(&b, 1);
    for (uint64_t round = 0; round < 3; round++)
        for (uint64_t i = 0; i < 8; i++) {
            uint64_t addr = (i * RF_NEAR_PAGES) << RF_PAGE_BITS;
            struct cell *cell = (struct cell *)(void *)rf_shadow_page(&b.shadow, addr)->cells;
            assert_int_equal(cell->value, round ? 100 * i + round - 1 : 0);
            cell->value = 100 * i + round;
        }
    assert_int_equal(b.shadow.page_count, 8);
    rf_memory_end(&b.memory);
}

/* A split tells every way to the page that its cells no longer stand for whole granules. */
static void test_a_split_page_is_not_whole(void **state)
{
    (void)state;
    static struct bench b;
    bench_init(&b, 1);
    set_range(&b, BASE, RF_GRANULE, 7);
    assert_non_null(rf_shadow_whole(&b.shadow, BASE));
    set_range(&b, BASE + 4, 4, 8);
    assert_null(rf_shadow_whole(&b.shadow, BASE));
    assert_int_equal(b.shadow.split_count, 1);
    assert_int_equal(rf_parts_count(rf_shadow_page(&b.shadow, BASE)->split[0]), 2);
    set_range(&b, BASE + 1, 1, 9);
    assert_int_equal(rf_parts_count(rf_shadow_page(&b.shadow, BASE)->split[0]), 8);
    compare(&b);
    clear_granule(&b, BASE);
    assert_int_equal(rf_shadow_page(&b.shadow, BASE)->split[0], 0);
    compare(&b);
    rf_memory_end(&b.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_bytes),
        cmocka_unit_test(test_pages_appear_when_they_are_used),
        cmocka_unit_test(test_pages_that_share_a_place),
        cmocka_unit_test(test_a_split_page_is_not_whole),
    };
    return cmocka_run_group_tests_name("shadow", tests, NULL, NULL);
}
