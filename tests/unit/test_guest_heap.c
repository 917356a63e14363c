/* The guest's heap against a model of it: what blocks hold, what addresses tell, what the detector is told; threads that pass blocks
 * to each other, signal handlers in the middle of it, fork in the middle of a storm, and the end of memory. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The sources themselves: the library that they are part of would take this program's malloc away. */
#include "guest/heap.c"
#include "guest/heap_central.c"
#include "guest/heap_pages.c"
#include "guest/system.c"
#include "guest/threads.h"

#ifdef __has_feature
#define WITH_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#else
#define WITH_ASAN 0
#endif

uint64_t rf_seen_nothing[2 * RF_SEEN];
const struct rf_fresh rf_fresh_nothing;
RF_TLS struct rf_hot rf_hot = RF_HOT_NONE;
int rf_started = 1;

/* What the detector was told last by this thread, and by all of them how often. */
static __thread struct {
    uintptr_t cleared, freed, written, pc;
    size_t cleared_size, freed_size, written_size;
} told;
static size_t returned;

bool rf_world_fences;
uint32_t rf_world_stopping;

void rf_world_wait(struct rf_self *self)
{
    (void)self;
}

static void handler(int number);

void rf_signals_deliver(void)
{
    rf_hot.self->pending_signals = 0;
    handler(0);
}

void rf_range_refuse(uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    (void)addr, (void)size, (void)flags, (void)pc;
}

struct rf_self *rf_self_attach(void)
{
    return NULL;
}

void *rf_find_real(const char *name)
{
    return strcmp(name, "abort") ? NULL : (void *)abort;
}

void rf_range_clear(uintptr_t addr, size_t size)
{
    told.cleared = addr, told.cleared_size = size;
}

uint32_t rf_range_fresh(uintptr_t addr, size_t size, size_t written, uintptr_t pc)
{
    rf_range_clear(addr, size);
    rf_access(addr, written, RF_A_WRITE, pc);
    return rf_note_here(pc, RF_A_WRITE, written);
}

uint16_t **rf_escape_leaves;
struct rf_fresh *rf_fresh_blocks;
const struct rf_tap *rf_tap;
bool rf_caper_on, rf_origins_on, rf_itm_used;

bool rf_itm_frees(const struct rf_self *self)
{
    (void)self;
    return false;
}

void rf_caper_freed(struct rf_self *self, uintptr_t block, size_t size)
{
    (void)self, (void)block, (void)size;
}

void rf_origins_escape(uintptr_t pc)
{
    (void)pc;
}

uint32_t rf_origins_note(uintptr_t pc)
{
    (void)pc;
    return 0;
}

void rf_origins_escape_note(uint32_t note)
{
    (void)note;
}

bool rf_escape_fresh(struct rf_self *self, uintptr_t addr, size_t size)
{
    (void)self, (void)addr, (void)size;
    return true;
}

void rf_escape_not_fresh(uintptr_t block)
{
    (void)block;
}

bool rf_escape_gone(struct rf_self *self, uintptr_t addr, size_t size)
{
    (void)self, (void)addr, (void)size;
    return false;
}

void rf_escape_flush(struct rf_self *self)
{
    (void)self;
}

void rf_objects_forget(uintptr_t addr, size_t size)
{
    (void)addr, (void)size;
}

uint32_t rf_range_free(uintptr_t addr, size_t size, uintptr_t pc)
{
    told.freed = addr, told.freed_size = size, told.pc = pc;
    struct rf_block block;
    if (!rf_heap_block(addr, &block) || block.freed) /* a report that is made here must find it */
        abort();
    return rf_note_here(pc, RF_A_WRITE | RF_A_FREE, size);
}

bool rf_range_touched(uintptr_t addr, size_t size)
{
    return addr + size > addr;
}

void rf_range_return(uintptr_t addr, size_t size)
{
    (void)addr;
    __atomic_fetch_add(&returned, size, __ATOMIC_RELAXED);
}

void rf_access(uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    if (!(flags & RF_A_WRITE))
        abort();
    told.written = addr, told.written_size = size, told.pc = pc;
}

/* Notes are the size they are given, tagged by the pc's lowest bits. */
uint32_t rf_note_here(uintptr_t pc, unsigned flags, size_t size)
{
    return (uint32_t)size << 4 | (uint32_t)(flags & RF_A_FREE) | ((uint32_t)pc & 7);
}

size_t rf_note_size(uint32_t note)
{
    return note >> 4;
}

static void begin_thread(struct rf_self *self, uint32_t number)
{
    memset(self, 0, sizeof *self);
    self->number = number;
    rf_hot.self = self;
}

static void end_thread(struct rf_self *self)
{
    rf_heap_thread_end(self);
    rf_hot.self = NULL;
}

static uint32_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 16);
}

/* Mostly small, sometimes over the borders of classes, units and segments. */
static size_t random_size(uint64_t *seed)
{
    uint32_t r = next_random(seed);
    switch (r % 16) {
    case 0:
        return next_random(seed) % (3u << 20);
    case 1:
    case 2:
        return next_random(seed) % (200u << 10);
    case 3:
    case 4:
    case 5:
        return next_random(seed) % (20u << 10);
    default:
        return next_random(seed) % 600;
    }
}

struct piece {
    unsigned char *at;
    size_t size, align;
    uint32_t note, thread;
    unsigned char fill;
};

/* First, last and a few bytes between: all of it would take long for large ones. */
static void fill(struct piece *piece)
{
    for (size_t i = 0; i < piece->size; i += 1 + i / 8)
        piece->at[i] = (unsigned char)(piece->fill + i);
    if (piece->size)
        piece->at[piece->size - 1] = piece->fill;
}

static bool intact(const struct piece *piece, size_t size)
{
    for (size_t i = 0; i < size; i += 1 + i / 8)
        if (i != piece->size - 1 && piece->at[i] != (unsigned char)(piece->fill + i))
            return false;
    return size < piece->size || !size || piece->at[size - 1] == piece->fill;
}

static bool known(const struct piece *piece, uintptr_t addr)
{
    struct rf_block block;
    return rf_heap_block(addr, &block) && block.addr == (uintptr_t)piece->at && block.size == piece->size && !block.freed &&
           (block.note & 15) == piece->note && block.thread == piece->thread;
}

static bool make(struct piece *piece, uint64_t *seed, struct rf_self *self)
{
    uintptr_t pc = next_random(seed) & 7;
    bool zero = next_random(seed) % 4 == 0;
    piece->size = random_size(seed);
    piece->align = next_random(seed) % 8 ? 0 : (size_t)1 << next_random(seed) % 24;
    piece->fill = (unsigned char)next_random(seed);
    piece->note = (uint32_t)pc;
    piece->thread = self->number;
    piece->at =
        zero || piece->align ? rf_heap_allocate(piece->size, piece->align, zero, pc) : rf_heap_quick(self, piece->size, pc);
    if (!piece->at || (uintptr_t)piece->at % (piece->align > 16 ? piece->align : 16))
        return false;
    if (told.cleared != (uintptr_t)piece->at || told.cleared_size < piece->size || told.written != told.cleared)
        return false;
    for (size_t i = 0; zero && i < piece->size; i += 1 + i / 64)
        if (piece->at[i])
            return false;
    fill(piece);
    return true;
}

/* `alone`: no other thread can have got it since. */
static bool drop(struct piece *piece, struct rf_self *self, bool alone)
{
    if (!intact(piece, piece->size))
        return false;
    rf_heap_release(piece->at, 5);
    struct rf_block block;
    bool pieces = piece->size > (4u << 20);
    bool found = alone && rf_heap_block((uintptr_t)piece->at + piece->size / 2, &block);
    bool right = told.pc == 5 && (pieces || (told.freed == (uintptr_t)piece->at && told.freed_size >= piece->size)) &&
                 (!found || (block.freed && block.addr == (uintptr_t)piece->at && block.size == piece->size &&
                             (block.note & 15) == (5 | RF_A_FREE) && block.thread == self->number));
    if (alone && piece->size <= RF_HEAP_SMALL && piece->align <= RF_UNIT && !found)
        return false;
    piece->at = NULL;
    return right;
}

static bool resize_piece(struct piece *piece, uint64_t *seed, struct rf_self *self)
{
    size_t was = piece->size, size = next_random(seed) % 3 ? random_size(seed) : was + next_random(seed) % 64;
    size = size ? size : 1;
    unsigned char *to = rf_heap_resize(piece->at, size, 3);
    if (!to || (uintptr_t)to % 16 || told.cleared != (uintptr_t)to)
        return false;
    piece->at = to;
    if (!intact(piece, was < size ? was : size))
        return false;
    piece->size = size;
    piece->align = 0;
    piece->note = 3;
    piece->thread = self->number;
    fill(piece);
    return true;
}

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
    void *again = rf_heap_allocate(64 << 10, 0, true, 1); /* given back means zero */
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

/* Threads that take each other's blocks out of a few mailboxes. */
enum { BOXES = 256, THREADS = 6, TURNS = 15000 };
static struct {
    pthread_mutex_t lock;
    struct piece piece;
} boxes[BOXES];
static unsigned failures;
static bool stop;

static void storm(struct rf_self *self, unsigned turns)
{
    uint64_t seed = 0x1234567 + self->number * 77777ul;
    for (unsigned i = 0; i < turns && !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        struct piece mine = { 0 }, other;
        bool right = make(&mine, &seed, self);
        unsigned box = next_random(&seed) % BOXES;
        pthread_mutex_lock(&boxes[box].lock);
        other = boxes[box].piece;
        boxes[box].piece = mine;
        pthread_mutex_unlock(&boxes[box].lock);
        if (other.at)
            right &= known(&other, (uintptr_t)other.at + (other.size ? other.size - 1 : 0)) &&
                     (next_random(&seed) % 4 || resize_piece(&other, &seed, self)) && drop(&other, self, false);
        if (!right)
            __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
    }
}

static void *storm_thread(void *number)
{
    struct rf_self self;
    begin_thread(&self, (uint32_t)(uintptr_t)number);
    storm(&self, TURNS);
    end_thread(&self);
    return NULL;
}

static void begin_storm(pthread_t *threads)
{
    stop = false;
    for (unsigned i = 0; i < BOXES; i++)
        pthread_mutex_init(&boxes[i].lock, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, storm_thread, (void *)(i + 1)), 0);
}

static void end_storm(pthread_t *threads)
{
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    struct rf_self self;
    begin_thread(&self, 0);
    for (unsigned i = 0; i < BOXES; i++)
        assert_true(!boxes[i].piece.at || drop(&boxes[i].piece, &self, true));
    end_thread(&self);
    assert_int_equal(failures, 0);
    size_t in_use, unused;
    rf_heap_totals(&in_use, &unused);
    assert_true(in_use < (rf_heap_spread ? RF_ARENAS : 1) * 2 * RF_HEAP_MEDIUM); /* the last span of each class stays */
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    begin_storm(threads);
    end_storm(threads);
}

/* The child of a process whose other threads were anywhere in the heap goes on. */
static void test_fork(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    begin_storm(threads);
    for (unsigned i = 0; i < 40; i++) {
        rf_heap_fork_before();
        void *during = rf_heap_allocate(48, 0, false, 1); /* as handlers of pthread_atfork may */
        pid_t child = fork();
        rf_heap_release(during, 1);
        rf_heap_fork_after(child == 0);
        if (!child) {
            alarm(20);
            struct rf_self self;
            begin_thread(&self, 100);
            failures = 0;
            for (unsigned b = 0; b < BOXES; b++) /* a box may be locked by who is not here */
                boxes[b].piece.at = NULL, pthread_mutex_init(&boxes[b].lock, NULL);
            storm(&self, 300);
            _exit(failures != 0);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    end_storm(threads);
}

/* Handlers that come at any instruction of the heap and use it themselves. */
static volatile sig_atomic_t handled, wrong;

static void handler(int number)
{
    (void)number;
    static uint64_t seed = 99;
    static struct piece kept[64];
    static unsigned nested;
    if (rf_hot.self->busy) {
        rf_hot.self->pending_signals = 1; /* delivered a little later */
        return;
    }
    if (__atomic_fetch_add(&nested, 1, __ATOMIC_RELAXED) == 0) {
        handled++;
        struct piece *piece = &kept[next_random(&seed) % 64];
        if (piece->at && (!intact(piece, piece->size) || !drop(piece, rf_hot.self, true)))
            wrong = 1;
        else if (!make(piece, &seed, rf_hot.self))
            wrong = 2;
    }
    __atomic_fetch_sub(&nested, 1, __ATOMIC_RELAXED);
}

static void test_handlers(void **state)
{
    (void)state;
    struct rf_self self;
    begin_thread(&self, 5);
    struct sigaction action = { .sa_handler = handler };
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    struct itimerspec often = { { 0, 30000 }, { 0, 30000 } }, never = { { 0, 0 }, { 0, 0 } };
    assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
    enum { PIECES = 300 };
    static struct piece pieces[PIECES];
    uint64_t seed = 4711;
    handled = 0;
    for (unsigned step = 0; step < 400000 && !wrong && (step < 20000 || handled < 3000); step++) {
        struct piece *piece = &pieces[next_random(&seed) % PIECES];
        /* What was told last may be told by the handler: only contents count here. */
        if (!piece->at) {
            piece->size = random_size(&seed);
            piece->fill = (unsigned char)step;
            piece->at = rf_heap_allocate(piece->size, 0, false, 1);
            assert_non_null(piece->at);
            fill(piece);
        } else {
            assert_true(intact(piece, piece->size));
            rf_heap_release(piece->at, 1);
            piece->at = NULL;
        }
    }
    timer_settime(timer, 0, &never, NULL);
    timer_delete(timer);
    signal(SIGALRM, SIG_DFL);
    assert_true(handled > 50);
    assert_int_equal(wrong, 0);
    for (unsigned i = 0; i < PIECES; i++) {
        if (pieces[i].at)
            rf_heap_release(pieces[i].at, 1);
        pieces[i].at = NULL;
    }
    end_thread(&self);
}

/* Two threads' blocks of one size: in pages of their own if they are to be spread. The same storms do not mind. */
static void *one_block(void *number)
{
    struct rf_self self;
    begin_thread(&self, (uint32_t)(uintptr_t)number);
    void *block = rf_heap_allocate(40, 0, false, 1);
    end_thread(&self);
    return block;
}

static void *block_of_thread(uintptr_t number)
{
    pthread_t thread;
    void *block;
    assert_int_equal(pthread_create(&thread, NULL, one_block, (void *)number), 0);
    assert_int_equal(pthread_join(thread, &block), 0);
    assert_non_null(block);
    return block;
}

static void test_spread(void **state)
{
    void *near[] = { block_of_thread(1), block_of_thread(2) };
    assert_true((uintptr_t)near[0] >> 16 == (uintptr_t)near[1] >> 16);
    rf_heap_spread = true;
    void *far[] = { block_of_thread(1), block_of_thread(2) };
    assert_true((uintptr_t)far[0] >> 16 != (uintptr_t)far[1] >> 16);
    test_threads(state);
    test_fork(state);
    test_handlers(state);
    rf_heap_spread = false;
    for (unsigned i = 0; i < 2; i++) {
        rf_heap_release(near[i], 1);
        rf_heap_release(far[i], 1);
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

/* All addresses used up: NULL, and what there is stays usable. */
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
        /* What is known of a block that was freed depends on what lies around it: that is left to chance after threads and timers. */
        cmocka_unit_test(test_misuse),   cmocka_unit_test(test_classes),   cmocka_unit_test(test_untold),
        cmocka_unit_test(test_model),    cmocka_unit_test(test_returned),  cmocka_unit_test(test_large),
        cmocka_unit_test(test_wide),     cmocka_unit_test(test_threads),   cmocka_unit_test(test_fork),
        cmocka_unit_test(test_spread), /* before handlers, which keep what they allocate */
        cmocka_unit_test(test_handlers), cmocka_unit_test(test_exhausted), cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
