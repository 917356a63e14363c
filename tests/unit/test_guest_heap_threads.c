/* The guest's heap under threads that pass blocks to each other, signal handlers in the middle of it, and fork in the middle of a
 * storm. */
#include "tests/unit/guest_heap.inc"

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
    pending = handler;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_spread), /* before handlers, which keep what they allocate */
        cmocka_unit_test(test_handlers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
