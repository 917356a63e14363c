/* Threads that end while nobody waits for their end, only for what they handed on, as goroutines do: their slots are used again as soon
 * as whoever starts the next one knows all that they did, and not before; and nothing of them is left but names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "detect/acculock.h"
#include "detect/generic.h"
#include "detect/pacer.h"

#define REAPER 0
#define MAIN 1
#define OBJECT 64
#define MANY 200 /* as narrow cells have room for */

static void *pieces(size_t bytes)
{
    return calloc(1, bytes);
}

static void give_back(void *piece, size_t bytes)
{
    (void)bytes;
    free(piece);
}

static struct rf_options options = { .rate = -1 }; /* pacer samples all */

/* A thread writes, tells main, and ends; `late`: it writes once more in between. How many slots there are, and bytes, after MANY. */
#define RUN(name, X, CELL, slots)                                                                                           \
    static void X##_event(struct X *d, uint32_t thread, enum rf_op op, uint64_t key)                                        \
    {                                                                                                                       \
        struct rf_event event = { .addr = key, .thread = thread, .op = op };                                                \
        X##_sync(d, X##_thread_at(d, thread), &event);                                                                      \
    }                                                                                                                       \
    static uint32_t X##_run(bool late, size_t *bytes)                                                                       \
    {                                                                                                                       \
        struct rf_memory memory = { .pieces = pieces, .give_back = give_back };                                             \
        struct X d = { .engine = { .memory = &memory, .options = &options } };                                              \
        CELL cell = { 0 }, other = { 0 };                                                                                   \
        X##_init(&d);                                                                                                       \
        for (uint32_t i = 2; i < MANY + 2; i++) {                                                                           \
            X##_event(&d, MAIN, RF_FORK, i);                                                                                \
            assert_false(X##_write(&d, X##_thread_at(&d, i), &cell, 0, i));                                                 \
            X##_event(&d, i, RF_SIGNAL, OBJECT);                                                                            \
            if (late)                                                                                                       \
                assert_int_equal(X##_write(&d, X##_thread_at(&d, i), &other, 0, i), i > 2);                                 \
            X##_event(&d, MAIN, RF_WAIT, OBJECT);                                                                           \
            X##_event(&d, REAPER, RF_JOIN, i | RF_JOIN_LAST | (late ? 0 : RF_JOIN_QUIET));                                  \
        }                                                                                                                   \
        assert_false(X##_write(&d, X##_thread_at(&d, MAIN), &cell, 0, 1));                                                  \
        uint32_t count = slots;                                                                                             \
        *bytes = memory.bytes;                                                                                              \
        rf_memory_end(&memory);                                                                                             \
        return count;                                                                                                       \
    }                                                                                                                       \
    static void name(void **state)                                                                                          \
    {                                                                                                                       \
        size_t bytes;                                                                                                       \
        (void)state;                                                                                                        \
        assert_true(X##_run(false, &bytes) <= 4);                                                                           \
        assert_true(bytes < MANY * 40 + 50000);                                                                             \
        assert_true(X##_run(true, &bytes) >= MANY);                                                                         \
    }

RUN(of_generic, gen, struct gen_cell, d.order.slot_count)
RUN(of_acculock, al, struct al_cell, d.accu.order.slot_count)
RUN(of_pacer, pc, struct pc_cell, d.clocks.slot_count)

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(of_generic), cmocka_unit_test(of_acculock),
                                        cmocka_unit_test(of_pacer) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
