/* The classic detectors on the examples and rules of the papers, step by step: AccuLock, Figures 3 and 4; Wood, Figure 2.3;
 * and the states of Eraser.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "detect/djit.h"
#include "detect/generic.h"
#include "detect/lockset.h"
#include "detect/multirace.h"

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

static struct rf_memory memory = { .pieces = pieces, .give_back = give_back };
static const struct rf_options options = { .transactions =
                                               RF_TXN_ALL }; /* times in steps of one, as the figures have them */

/* A detector at its beginning; X_init follows. */
#define BEGIN(d) ((d).engine = (struct rf_engine){ .memory = &memory, .options = &options })

static int end_of_test(void **state)
{
    (void)state;
    rf_memory_end(&memory);
    return 0;
}

static struct rf_event event(enum rf_op op, uint64_t addr)
{
    return (struct rf_event){ .op = op, .addr = addr };
}

static void assert_clock(const struct rf_clock *clock, uint32_t first, uint32_t second)
{
    assert_int_equal(rf_clock_get(clock, 0), first);
    assert_int_equal(rf_clock_get(clock, 1), second);
}

static uint32_t time_in(const struct vc_vector *v, uint32_t slot)
{
    return slot < v->len ? v->entries[slot].time : 0;
}

static void assert_vector(const struct vc_vector *v, uint32_t first, uint32_t second)
{
    assert_int_equal(time_in(v, 0), first);
    assert_int_equal(time_in(v, 1), second);
}

/* Two threads of Generic, and what happens to them. */
struct two {
    struct gen d;
    struct rf_thread *t, *u;
    struct gen_cell x;
};

static struct two *two_threads(void)
{
    static struct two two;
    memset(&two, 0, sizeof two);
    BEGIN(two.d);
    gen_init(&two.d);
    two.t = gen_thread_at(&two.d, 0);
    two.u = gen_thread_at(&two.d, 1);
    assert_clock(&two.t->clock, 1, 0); /* C_t(t) = 1, and 0 for every other thread */
    assert_clock(&two.u->clock, 0, 1);
    return &two;
}

static void does(struct two *two, struct rf_thread *t, enum rf_op op, uint64_t addr)
{
    struct rf_event e = event(op, addr);
    gen_sync(&two->d, t, &e);
}

static const struct rf_clock *lock_clock(struct two *two, uint64_t lock)
{
    return &rf_order_object(&two->d.order, RF_SPACE_LOCK, lock)->released;
}

enum { L = 100, M = 200 };

static void acculock_figure_3(void **state)
{
    (void)state;
    struct two *two = two_threads();
    for (int i = 0; i < 2; i++) { /* T2 comes to the figure at time 3 */
        does(two, two->u, RF_ACQUIRE, M);
        does(two, two->u, RF_RELEASE, M);
    }
    assert_clock(&two->u->clock, 0, 3);
    does(two, two->t, RF_ACQUIRE, L);

    assert_false(gen_write(&two->d, two->t, &two->x, 0, 1)); /* wr1 */
    assert_clock(&two->t->clock, 1, 0);
    assert_vector(&two->x.past->writes[0], 1, 0);
    assert_clock(lock_clock(two, L), 0, 0);

    does(two, two->t, RF_RELEASE, L);
    assert_clock(lock_clock(two, L), 1, 0);
    assert_clock(&two->t->clock, 2, 0);

    does(two, two->u, RF_ACQUIRE, L);
    assert_clock(&two->u->clock, 1, 3);

    assert_false(gen_write(&two->d, two->u, &two->x, 0, 2)); /* wr2: C_x = (1, 0) ⊑ (1, 3) = C_2 */
    assert_vector(&two->x.past->writes[0], 1, 3);

    does(two, two->u, RF_RELEASE, L);
    assert_clock(lock_clock(two, L), 1, 3);
    assert_clock(&two->u->clock, 1, 4);
}

static void wood_figure_2_3_vc_fork(void **state)
{
    (void)state;
    struct two *two = two_threads();
    does(two, two->t, RF_FORK, 2);
    struct rf_thread *v = gen_thread_at(&two->d, 2);
    assert_clock(&v->clock, 1, 0);
    assert_int_equal(rf_clock_get(&v->clock, v->slot), 1);
    assert_clock(&two->t->clock, 2, 0);
}

static void wood_figure_2_3_vc_join(void **state)
{
    (void)state;
    struct two *two = two_threads();
    does(two, two->u, RF_RELEASE, M);
    does(two, two->t, RF_JOIN, 1);
    assert_clock(&two->t->clock, 1, 2);
    assert_clock(&two->u->clock, 0, 2);
}

static void wood_figure_2_3_vc_release(void **state)
{
    (void)state;
    struct two *two = two_threads();
    does(two, two->t, RF_ACQUIRE, L);
    does(two, two->t, RF_RELEASE, L);
    assert_clock(lock_clock(two, L), 1, 0);
    assert_clock(&two->t->clock, 2, 0);
}

static void wood_figure_2_3_vc_acquire(void **state)
{
    (void)state;
    struct two *two = two_threads();
    does(two, two->t, RF_RELEASE, L);
    does(two, two->u, RF_ACQUIRE, L);
    assert_clock(&two->u->clock, 1, 1);
    assert_clock(lock_clock(two, L), 1, 0);
}

static void wood_figure_2_3_vc_read(void **state)
{
    (void)state;
    struct two *two = two_threads();
    assert_false(gen_read(&two->d, two->t, &two->x, 0, 1));
    assert_false(gen_read(&two->d, two->u, &two->x, 0, 2)); /* reads do not race with reads */
    assert_vector(&two->x.past->reads[0], 1, 1);
    assert_vector(&two->x.past->writes[0], 0, 0);

    struct gen_cell y = { NULL };
    assert_false(gen_write(&two->d, two->t, &y, 0, 3));
    assert_false(gen_read(&two->d, two->t, &y, 0, 4));
    assert_true(gen_read(&two->d, two->u, &y, 0, 5)); /* W_y(t) = 1 > C_u(t) = 0 */
    assert_int_equal(two->d.engine.first.thread, 0);
    assert_int_equal(two->d.engine.first.note, 3);
    assert_true(two->d.engine.first.writes);
    assert_false(two->d.engine.first.predictive);
}

static void wood_figure_2_3_vc_write(void **state)
{
    (void)state;
    struct two *two = two_threads();
    assert_false(gen_read(&two->d, two->t, &two->x, 0, 1));
    assert_true(gen_write(&two->d, two->u, &two->x, 0, 2)); /* R_x(t) = 1 > C_u(t) = 0 */
    assert_int_equal(two->d.engine.first.note, 1);
    assert_false(two->d.engine.first.writes);
    assert_vector(&two->x.past->reads[0], 1, 0);
    assert_vector(&two->x.past->writes[0], 0, 1);
    assert_true(gen_write(&two->d, two->t, &two->x, 0, 3)); /* W_x(u) = 1 > C_t(u) = 0 */
    assert_int_equal(two->d.engine.first.note, 2);
    assert_true(two->d.engine.first.writes);
}

/* ---- locksets ---- */

static void assert_set(const struct rf_locksets *table, rf_lockset set, uint32_t count, uint32_t member)
{
    assert_int_not_equal(set, RF_ALL_LOCKS);
    assert_int_equal(table->sets[set].count, count);
    if (count)
        assert_int_equal(table->sets[set].locks[0], member);
}

enum { L1 = 11, L2 = 12, T1 = 1, T2 = 2 };

static void acculock_figure_4_lockset(void **state)
{
    (void)state;
    static struct ls d;
    memset(&d, 0, sizeof d);
    BEGIN(d);
    ls_init(&d);
    struct pr_thread *t1 = ls_thread_at(&d, T1), *t2 = ls_thread_at(&d, T2);
    struct ls_cell x = { 0 };
    struct rf_event lock1 = event(RF_ACQUIRE, L1), unlock1 = event(RF_RELEASE, L1);
    struct rf_event lock2 = event(RF_ACQUIRE, L2), unlock2 = event(RF_RELEASE, L2);
    assert_int_equal(ls_candidates(&x), RF_ALL_LOCKS);

    assert_false(ls_read(&d, t1, &x, 0, 1)); /* rd1 */
    assert_set(&d.protection.locksets, ls_held(t1, false), 1, RF_READERS_LOCK);
    assert_set(&d.protection.locksets, ls_candidates(&x), 1, RF_READERS_LOCK);

    ls_sync(&d, t1, &lock1);
    assert_set(&d.protection.locksets, ls_held(t1, true), 1, rf_lock_number(&d.protection.locksets, L1));
    assert_set(&d.protection.locksets, ls_candidates(&x), 1, RF_READERS_LOCK);

    assert_true(ls_write(&d, t1, &x, 0, 2)); /* wr1: the false warning */
    assert_set(&d.protection.locksets, ls_candidates(&x), 0, 0);
    assert_false(d.engine.first.known); /* no other thread has been here */
    assert_int_equal(d.engine.first.thread, RF_UNKNOWN);
    assert_true(d.engine.first.predictive);

    ls_sync(&d, t1, &unlock1);
    assert_set(&d.protection.locksets, ls_held(t1, true), 0, 0);
    ls_sync(&d, t2, &lock2);
    assert_set(&d.protection.locksets, ls_held(t2, true), 1, rf_lock_number(&d.protection.locksets, L2));

    assert_true(ls_read(&d, t2, &x, 0, 3)); /* rd2: race! */
    assert_set(&d.protection.locksets, ls_candidates(&x), 0, 0);
    assert_int_equal(d.engine.first.thread, T1);
    assert_int_equal(d.engine.first.note, 2);
    assert_true(d.engine.first.writes);

    ls_sync(&d, t2, &unlock2);
    assert_set(&d.protection.locksets, ls_held(t2, true), 0, 0);
}

/* Figure 4's accesses; the rest tells whether rd2 is reported. */
#define FIGURE_4(X, d, cell)                                                                                                \
    do {                                                                                                                    \
        struct X##_thread *t1 = X##_thread_at(&(d), T1);                                                                    \
        struct X##_thread *t2 = X##_thread_at(&(d), T2);                                                                    \
        assert_false(X##_read(&(d), t1, &(cell), 0, 1));                                                                    \
        X##_sync(&(d), t1, &(struct rf_event){ L1, .op = RF_ACQUIRE });                                                     \
        assert_false(X##_write(&(d), t1, &(cell), 0, 2));                                                                   \
        X##_sync(&(d), t1, &(struct rf_event){ L1, .op = RF_RELEASE });                                                     \
        X##_sync(&(d), t2, &(struct rf_event){ L2, .op = RF_ACQUIRE });                                                     \
        rd2 = X##_read(&(d), t2, &(cell), 0, 3);                                                                            \
    } while (0)

static void acculock_figure_4_eraser_misses_the_race(void **state)
{
    (void)state;
    static struct er d;
    memset(&d, 0, sizeof d);
    BEGIN(d);
    er_init(&d);
    struct er_cell x = { 0 };
    bool rd2;
    FIGURE_4(er, d, x);
    assert_false(rd2);
    assert_int_equal(er_state(&x.x), ER_SHARED);
    assert_set(&d.protection.locksets, er_candidates(&x.x), 1, rf_lock_number(&d.protection.locksets, L2));
}

static void acculock_figure_4_multirace_misses_it_too(void **state)
{
    (void)state;
    static struct mr d;
    memset(&d, 0, sizeof d);
    BEGIN(d);
    mr_init(&d);
    struct mr_cell x = { 0 };
    bool rd2;
    FIGURE_4(mr, d, x);
    assert_false(rd2);
}

static void acculock_figure_4_vector_clocks_find_it(void **state)
{
    (void)state;
    static struct gen g;
    static struct dj d;
    memset(&g, 0, sizeof g);
    memset(&d, 0, sizeof d);
    BEGIN(g);
    BEGIN(d);
    gen_init(&g);
    dj_init(&d);
    struct gen_cell x = { 0 };
    struct dj_cell y = { 0 };
    bool rd2;
    FIGURE_4(gen, g, x);
    assert_true(rd2);
    assert_int_equal(g.engine.first.note, 2);
    FIGURE_4(dj, d, y);
    assert_true(rd2);
    assert_int_equal(d.engine.first.note, 2);
    assert_int_equal(d.engine.first.thread, T1);
}

static void eraser_goes_through_its_states(void **state)
{
    (void)state;
    static struct er d;
    memset(&d, 0, sizeof d);
    BEGIN(d);
    er_init(&d);
    struct pr_thread *t1 = er_thread_at(&d, T1), *t2 = er_thread_at(&d, T2);
    struct er_cell x = { 0 };
    assert_int_equal(er_state(&x.x), ER_VIRGIN);
    assert_false(er_write(&d, t1, &x, 0, 1));
    assert_false(er_write(&d, t1, &x, 0, 2));
    assert_int_equal(er_state(&x.x), ER_EXCLUSIVE);
    assert_false(er_read(&d, t2, &x, 0, 3)); /* no lock, but only read since */
    assert_int_equal(er_state(&x.x), ER_SHARED);
    assert_int_equal(er_candidates(&x.x), RF_NO_LOCKS);
    assert_false(er_read(&d, t1, &x, 0, 4));
    assert_true(er_write(&d, t1, &x, 0, 5));
    assert_int_equal(er_state(&x.x), ER_SHARED_MODIFIED);
    assert_int_equal(d.engine.first.thread, T2);
    assert_int_equal(d.engine.first.note, 3);
    assert_false(d.engine.first.writes);
    assert_true(er_read(&d, t2, &x, 0, 6));
    assert_int_equal(d.engine.first.note, 5);
}

/* Savage et al., section 2.3: a lock held for reading protects a read, and does not protect a write. */
static void eraser_read_locks_do_not_protect_writes(void **state)
{
    (void)state;
    static struct er d;
    memset(&d, 0, sizeof d);
    BEGIN(d);
    er_init(&d);
    struct pr_thread *t1 = er_thread_at(&d, T1), *t2 = er_thread_at(&d, T2);
    struct er_cell x = { 0 };
    struct rf_event lock = event(RF_ACQUIRE, L), unlock = event(RF_RELEASE, L), read_lock = event(RF_READ_ACQUIRE, L);
    er_sync(&d, t1, &lock);
    assert_false(er_write(&d, t1, &x, 0, 1));
    er_sync(&d, t1, &unlock);
    er_sync(&d, t2, &read_lock);
    assert_false(er_read(&d, t2, &x, 0, 2));
    assert_set(&d.protection.locksets, er_candidates(&x.x), 1, rf_lock_number(&d.protection.locksets, L));
    assert_true(er_write(&d, t2, &x, 0, 3));
    assert_int_equal(er_candidates(&x.x), RF_NO_LOCKS);
}

/* MultiRace checks where Eraser's lockset is empty, and only there. */
static void multirace_checks_an_empty_lockset(void **state)
{
    (void)state;
    static struct mr d;
    memset(&d, 0, sizeof d);
    BEGIN(d);
    mr_init(&d);
    struct mr_thread *t1 = mr_thread_at(&d, T1), *t2 = mr_thread_at(&d, T2);
    struct mr_cell x = { 0 }, y = { 0 };
    assert_false(mr_write(&d, t1, &x, 0, 1));
    assert_true(mr_read(&d, t2, &x, 0, 2)); /* already in Shared */
    assert_int_equal(d.engine.first.note, 1);
    assert_false(d.engine.first.predictive);
    struct rf_event signal = event(RF_SIGNAL, L), wait = event(RF_WAIT, L);
    assert_false(mr_write(&d, t1, &y, 0, 3));
    mr_sync(&d, t1, &signal);
    mr_sync(&d, t2, &wait);
    assert_false(mr_write(&d, t2, &y, 0, 4)); /* empty, checked, and ordered */
    assert_int_equal(er_candidates(&y.x), RF_NO_LOCKS);
    assert_int_equal(d.write_checks, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(acculock_figure_3, end_of_test),
        cmocka_unit_test_teardown(wood_figure_2_3_vc_fork, end_of_test),
        cmocka_unit_test_teardown(wood_figure_2_3_vc_join, end_of_test),
        cmocka_unit_test_teardown(wood_figure_2_3_vc_release, end_of_test),
        cmocka_unit_test_teardown(wood_figure_2_3_vc_acquire, end_of_test),
        cmocka_unit_test_teardown(wood_figure_2_3_vc_read, end_of_test),
        cmocka_unit_test_teardown(wood_figure_2_3_vc_write, end_of_test),
        cmocka_unit_test_teardown(acculock_figure_4_lockset, end_of_test),
        cmocka_unit_test_teardown(acculock_figure_4_eraser_misses_the_race, end_of_test),
        cmocka_unit_test_teardown(acculock_figure_4_multirace_misses_it_too, end_of_test),
        cmocka_unit_test_teardown(acculock_figure_4_vector_clocks_find_it, end_of_test),
        cmocka_unit_test_teardown(eraser_goes_through_its_states, end_of_test),
        cmocka_unit_test_teardown(eraser_read_locks_do_not_protect_writes, end_of_test),
        cmocka_unit_test_teardown(multirace_checks_an_empty_lockset, end_of_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
