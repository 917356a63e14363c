/* The same games with larger blocks of moments, and sweeps that come by chance: what is left of a block is more than a word of sweep.seen tells, and
 * moves to where two blocks meet. And what the games hardly ever come to. */
#define RF_MOMENT_BITS 14
#define RF_MOMENT_BLOCK_BITS 7
int all_of_granules(void);
#define main all_of_granules
#include "tests/unit/test_guest_granule.c"
#undef main

static void test_moving(void **state)
{
    (void)state;
    sweeps_by_chance = true;
    for (uint64_t seed = 1; seed <= 300; seed++)
        play(seed);
    assert_true(sweeps > 1000);
}

/* What a moment stands for is what the one stands for that it moves to, wherever in its block it is, and whichever others move with it. */
static void test_moves(void **state)
{
    (void)state;
    uint64_t random = 7;
    uint32_t emptied[6];
    begin_game();
    if (!sweep.seen)
        sweep.seen = rf_reserve(SEEN_BYTES);
    for (unsigned i = 0; i < 6;
         i++) { /* there is room between them, so that what follows a block is not the next one that is taken */
        uint32_t between = rf_moments_take(false);
        emptied[i] = rf_moments_take(false);
        rf_moments_free(between);
    }
    for (unsigned i = 0; i < 6; i++) {
        rf_moment_blocks[emptied[i]] = (struct rf_moment_block){ 3, 1000 * i + 5 };
        sweep.state[emptied[i]] = NAMED;
        for (uint32_t m = emptied[i] << RF_MOMENT_BLOCK_BITS; m < (emptied[i] + 1) << RF_MOMENT_BLOCK_BITS; m++) {
            ((struct rf_noted *)RF_NOTES)[m] = (struct rf_noted){ m + 77, m + 99 };
            if (random_below(&random, 4) <= i % 4)
                mark(m);
        }
    }
    uint32_t before = 0;
    for (unsigned i = 0; i < 6; i++)
        assert_true(empty(emptied[i]));
    for (unsigned i = 0; i < 6; i++) {
        for (uint32_t m = emptied[i] << RF_MOMENT_BLOCK_BITS; m < (emptied[i] + 1) << RF_MOMENT_BLOCK_BITS; m++) {
            if (!(sweep.seen[m / 64] >> m % 64 & 1))
                continue;
            uint32_t moved = move(m);
            assert_int_equal(sweep.state[moved >> RF_MOMENT_BLOCK_BITS], OWN);
            assert_int_equal(rf_moment_slot(moved), 3);
            assert_int_equal(rf_moment_time(moved), rf_moment_time(m));
            assert_int_equal(rf_moment_note(moved), m + 77);
            assert_int_equal(rf_moment_locks(moved), m + 99);
            assert_true(moved != before);
            before = moved;
        }
    }
}

/* What a granule's bytes have of two threads, one of which happened before: by the shortest way, too. */
static void test_halves_of_two(void **state)
{
    (void)state;
    for (unsigned half = 0; half < 8; half += 4) { /* of the one that did not */
        begin_game();
        play_as(2);
        rf_slow_write8(address_of(1), 0x5000); /* the place is known from now on */
        rf_slow_write8(address_of(1), 0x5000);
        release_step(2, 3);
        play_as(0);
        rf_slow_write4(address_of(0) + half, 0x5010);
        play_as(1);
        rf_slow_write4(address_of(0) + 4 - half, 0x5020);
        release_step(1, 0);
        play_as(2);
        acquire_step(2, 0);
        game.reported = false;
        rf_slow_write8(address_of(0), 0x5000);
        assert_true(game.reported);
        assert_int_equal(game.thread, 0);
        forget(0, 0, RF_GRANULE);
        forget(1, 0, RF_GRANULE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_moving), cmocka_unit_test(test_moves),
                                        cmocka_unit_test(test_halves_of_two) };
    return cmocka_run_group_tests_name("guest blocks", tests, begin, NULL);
}
