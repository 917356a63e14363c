/* The guest's heap against a model of it: what blocks hold, what addresses tell, what the detector is told; misuse, and the end of
 * memory. Threads: test_guest_heap_threads.c. */
#include <sys/resource.h>

#include "tests/unit/guest_heap.inc"

#ifdef __has_feature
#define WITH_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#else
#define WITH_ASAN 0
#endif

static void test_classes(void **state)
{
    (void)state;
    assert_int_equal(rf_class_of(RF_HEAP_SMALL), RF_HEAP_CLASSES - 1);
    assert_int_equal(rf_class_size(RF_HEAP_CLASSES - 1), RF_HEAP_SMALL);
    for (size_t size = 0; size <= RF_HEAP_SMALL; size++) {
        unsigned class = rf_class_of(size);
        assert_true(rf_class_size(class) >= size && rf_class_size(class) % 16 == 0);
        assert_true(!class || rf_class_size(class - 1) < size);
        assert_true(size < 16 || rf_class_size(class) - size < 16 || (rf_class_size(class) - size) * 8 <= size);
    }
    for (unsigned class = 0; class < RF_HEAP_CLASSES; class ++) { /* the reciprocal is exact wherever blocks may be */
        struct rf_span span = { .block = (uint32_t)rf_class_size(class) };
        span.reciprocal = (((uint64_t)1 << 40) + span.block - 1) / span.block;
        for (uintptr_t i = 0; i < 4 * RF_UNIT / span.block; i++)
            assert_true(rf_index_in(&span, i * span.block) == i && rf_index_in(&span, (i + 1) * span.block - 1) == i);
    }
}

static void test_model(void **state)
{
    (void)state;
    enum { PIECES = 600, STEPS = 40000 };
    static struct piece pieces[PIECES];
    struct rf_self self;
    begin_thread(&self, 7);
    uint64_t seed = 0x9e3779b97f4a7c15;
    for (unsigned step = 0; step < STEPS; step++) {
        struct piece *piece = &pieces[next_random(&seed) % PIECES];
        if (!piece->at)
            assert_true(make(piece, &seed, &self));
        else if (next_random(&seed) % 3)
            assert_true(drop(piece, &self, true));
        else
            assert_true(resize_piece(piece, &seed, &self));
        if (piece->at) {
            uintptr_t at = (uintptr_t)piece->at;
            assert_true(known(piece, at) &&
                        (!piece->size || (known(piece, at + piece->size - 1) && known(piece, at + piece->size / 2))));
        }
        if (step % 1000 == 0)
            for (unsigned i = 0; i < PIECES; i++)
                assert_true(!pieces[i].at ||
                            (intact(&pieces[i], pieces[i].size) && known(&pieces[i], (uintptr_t)pieces[i].at)));
    }
    for (unsigned i = 0; i < PIECES; i++)
        assert_true(!pieces[i].at || drop(&pieces[i], &self, true));
    end_thread(&self);
    struct rf_block block;
    assert_false(rf_heap_block((uintptr_t)&self, &block));
    assert_false(rf_heap_block(0, &block) || rf_heap_block(UINTPTR_MAX, &block) ||
                 rf_heap_block((uintptr_t)1 << 47, &block));
}

/* Everything was freed, so that nearly nothing is in use; and what is free goes back with its history. */
static void test_returned(void **state)
{
    (void)state;
    struct rf_self self;
    begin_thread(&self, 0);
    size_t before, in_use, unused;
    rf_heap_totals(&before, &unused);
    enum { COUNT = 200000 };
    static void *blocks[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        blocks[i] = rf_heap_allocate(100 + i % 400, 0, false, 1);
        assert_non_null(blocks[i]);
    }
    rf_heap_totals(&in_use, &unused);
    assert_true(in_use > COUNT * 200ul && in_use < COUNT * 360ul + before);
    size_t returned_before = returned;
    for (unsigned i = 0; i < COUNT; i++)
        rf_heap_release(blocks[(i * 7919ul) % COUNT], 1);
    end_thread(&self);
    rf_heap_totals(&in_use, &unused);
    assert_true(in_use < before + (1u << 20) && unused < (4u << 20));
    assert_true(returned - returned_before > COUNT * 200ul);
    rf_heap_trim();
    rf_heap_totals(&in_use, &unused);
    assert_int_equal(unused, 0);
    assert_true(in_use < (rf_heap_spread ? RF_ARENAS : 1) * 2 * RF_HEAP_MEDIUM); /* the last span of each class stays */
    void *again = rf_heap_allocate(64 << 10, 0, true, 1);                        /* given back means zero */
    for (unsigned i = 0; i < 64 << 10; i++)
        assert_int_equal(((char *)again)[i], 0);
    rf_heap_release(again, 1);
}

static void test_large(void **state)
{
    (void)state;
    struct rf_self self;
    begin_thread(&self, 1);
    const size_t mb = 1 << 20;
    unsigned char *block = rf_heap_allocate(2 * mb, 0, true, 1);
    for (size_t size = 2 * mb; size < 100 * mb; size += size / 2) {
        block = rf_heap_resize(block, size, 1);
        assert_non_null(block);
        struct rf_block found;
        assert_true(rf_heap_block((uintptr_t)block + size - 1, &found) && found.addr == (uintptr_t)block &&
                    found.size == size);
        assert_false(rf_heap_block((uintptr_t)block + ((size + 4095) & ~4095ul), &found));
        block[size - 1] = 77;
        if (size > 2 * mb)
            assert_int_equal(block[size / 3], 0);
    }
    block[5] = 55;
    block = rf_heap_resize(block, 3 * mb, 1);
    assert_int_equal(block[5], 55);
    struct rf_block found;
    assert_false(rf_heap_block((uintptr_t)block + 3 * mb, &found) || rf_heap_block((uintptr_t)block + 20 * mb, &found));
    rf_heap_release(block, 1);
    for (size_t align = 16; align <= 64 * mb; align *= 2) {
        void *aligned = rf_heap_allocate(100, align, false, 1);
        assert_true(aligned && (uintptr_t)aligned % align == 0);
        assert_true(rf_heap_block((uintptr_t)aligned + 99, &found) && found.size == 100);
        rf_heap_release(aligned, 1);
    }
    assert_null(rf_heap_allocate(SIZE_MAX, 0, false, 1));
    assert_null(rf_heap_allocate(PTRDIFF_MAX, 0, false, 1));
    assert_null(rf_heap_allocate(SIZE_MAX - 100, 4096, false, 1));
    assert_null(rf_heap_allocate((size_t)1 << 46, 0, false, 1));
    end_thread(&self);
}

/* A side has 13 bits for the slack and 16 for the thread: what does not fit is known all the same. */
static void test_wide(void **state)
{
    (void)state;
    struct rf_self self;
    struct rf_block found;
    begin_thread(&self, 70000);
    char *block = rf_heap_allocate(33, 0, false, 1);
    assert_true(rf_heap_block((uintptr_t)block + 32, &found) && found.thread == 70000 && found.size == 33);
    rf_heap_release(block, 1);
    assert_true(rf_heap_block((uintptr_t)block + 32, &found) && found.thread == 70000 && found.size == 33 && found.freed);
    self.number = 3;
    block = rf_heap_allocate(1, 16384, false, 1);
    assert_true(rf_heap_block((uintptr_t)block, &found) && found.thread == 3 && found.size == 1);
    rf_heap_release(block, 1);
    end_thread(&self);
}

/* Before the start, inside the guest, in a thread that nobody knows: blocks without a note, and nobody is told. */
static void test_untold(void **state)
{
    (void)state;
    struct rf_self self;
    for (unsigned turn = 0; turn < 3; turn++) {
        rf_started = turn != 0;
        begin_thread(&self, 9);
        self.inside = turn == 1;
        if (turn == 2)
            rf_hot.self = NULL;
        memset(&told, 0, sizeof told);
        struct rf_block found;
        void *blocks[100];
        for (unsigned i = 0; i < 100; i++) {
            blocks[i] = rf_heap_allocate(i * 50, 0, i & 1, 1);
            assert_true(blocks[i] && rf_heap_block((uintptr_t)blocks[i], &found) && found.note == 0 && found.size == i * 50);
        }
        for (unsigned i = 0; i < 100; i++)
            rf_heap_release(blocks[i], 1);
        assert_true(!told.freed && !told.written);
        rf_started = 1;
        end_thread(&self);
    }
}

/* What ends the program must do so by SIGABRT, after one line. */
static void assert_aborts(void (*f)(void), const char *expected)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], 2);
        signal(SIGABRT, SIG_DFL);
        f();
        _exit(0);
    }
    close(ends[1]);
    char line[512] = "";
    ssize_t length = read(ends[0], line, sizeof line - 1);
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    if (length <= 0 || !strstr(line, expected) || strchr(line, '\n') != line + length - 1)
        fail_msg("'%s' instead of '%s'", line, expected);
}

static void free_twice(void)
{
    void *block = rf_heap_allocate(40, 0, false, 1);
    rf_heap_release(block, 1);
    rf_heap_release(block, 1);
}

static void free_large_twice(void)
{
    void *block = rf_heap_allocate(900000, 0, false, 1);
    rf_heap_release(block, 1);
    rf_heap_release(block, 1);
}

static void free_inside(void)
{
    rf_heap_release((char *)rf_heap_allocate(400, 0, false, 1) + 16, 1);
}

static void free_foreign(void)
{
    int local;
    rf_heap_release(&local, 1);
}

static void resize_freed(void)
{
    void *block = rf_heap_allocate(40, 0, false, 1);
    rf_heap_release(block, 1);
    rf_heap_resize(block, 80, 1);
}

static void test_misuse(void **state)
{
    (void)state;
    assert_aborts(free_twice, "double free");
    assert_aborts(free_large_twice, "double free");
    assert_aborts(free_inside, "is not its start");
    assert_aborts(free_foreign, "no block of the heap");
    assert_aborts(resize_freed, "realloc of");
}

/* The address behind a block's end is inside the block, whatever its size. */
static void test_apart(void **state)
{
    (void)state;
    rf_heap_apart = 1;
    for (size_t size = 16; size <= (size_t)4 << 20; size = size < 64 ? size + 16 : size * 2) {
        struct rf_block block;
        char *at = rf_heap_allocate(size, 0, false, 1);
        for (int i = 0; i < 2; i++) {
            assert_true(rf_heap_block((uintptr_t)at + size, &block));
            assert_ptr_equal(block.addr, at);
            assert_int_equal(block.size, size);
            assert_true(rf_heap_usable(at) >= size && rf_heap_usable(at) < block.usable);
            at = rf_heap_resize(at, size, 1);
        }
        rf_heap_release(at, 1);
    }
    rf_heap_apart = 0;
}

/* All addresses used up: NULL, and what there is stays usable. */
static void test_exhausted(void **state)
{
    (void)state;
    if (WITH_ASAN) /* needs more addresses than any limit leaves */
        skip();
    pid_t child = fork();
    if (!child) {
        struct rlimit limit = { 256u << 20, 256u << 20 };
        setrlimit(RLIMIT_AS, &limit);
        struct rf_self self;
        begin_thread(&self, 0);
        static void *blocks[100000];
        unsigned count = 0;
        uint64_t seed = 5;
        size_t bytes = 0;
        for (; count < 100000 && (blocks[count] = rf_heap_allocate(bytes = next_random(&seed) % 100000, 0, false, 1));
             count++)
            memset(blocks[count], 1, bytes);
        bool failed = count < 100000 && count > 1000;
        void *grown = rf_heap_resize(blocks[0], 300u << 20, 1);
        failed = failed && !grown;
        for (unsigned i = 0; i < count; i++)
            rf_heap_release(blocks[i], 1);
        void *again = rf_heap_allocate(100000, 0, false, 1);
        _exit(failed && again ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misuse), cmocka_unit_test(test_classes),   cmocka_unit_test(test_untold),
        cmocka_unit_test(test_model),  cmocka_unit_test(test_returned),  cmocka_unit_test(test_large),
        cmocka_unit_test(test_wide),   cmocka_unit_test(test_exhausted), cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
