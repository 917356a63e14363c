/* Every reason for which a trace is not well-formed, and generated traces, which are. */
#include "tests/unit/trace_files.h"
#include "trace/check.h"

struct verdicts {
    char text[2000];
    size_t used;
};

static void note(void *context, uint64_t number, const struct rf_event *event, const char *reason)
{
    (void)event;
    struct verdicts *verdicts = context;
    verdicts->used += (size_t)snprintf(verdicts->text + verdicts->used, sizeof verdicts->text - verdicts->used, "%llu %s\n",
                                       (unsigned long long)number, reason);
}

static void check_memory(const void *at, size_t size, enum rf_trace_format format, struct verdicts *verdicts)
{
    char *error = NULL;
    struct rf_reader *reader = rf_reader_open_memory(at, size, format, &error);
    assert_non_null(reader);
    struct rf_check *check = rf_check_new(note, verdicts);
    struct rf_chunk *chunk = rf_chunk_new();
    struct rf_batch batch;
    while (rf_reader_fetch(reader, chunk) == RF_TRACE_MORE && rf_chunk_decode(reader, chunk, &batch))
        rf_check_batch(check, &batch);
    assert_string_equal(rf_reader_error(reader), "");
    assert_int_equal(rf_check_violations(check) > 0, verdicts->used > 0);
    rf_chunk_free(chunk);
    rf_check_free(check);
    rf_reader_close(reader);
}

static void assert_verdicts(const char *text, const char *expected)
{
    struct verdicts verdicts = { 0 };
    check_memory(text, strlen(text), RF_FORMAT_STD, &verdicts);
    assert_string_equal(verdicts.text, expected);
}

static void locks(void **state)
{
    (void)state;
    assert_verdicts("A|acq(l)|\nA|acq(l)|\nA|rel(l)|\nA|rel(l)|\nB|acq(l)|\nB|rel(l)|\n", "");
    assert_verdicts("A|rel(l)|\n", "1 nobody holds the lock\n");
    assert_verdicts("A|acq(l)|\nB|rel(l)|\n", "2 another thread holds the lock\n");
    assert_verdicts("A|acq(l)|\nB|acq(l)|\n", "2 another thread holds the lock\n");
    assert_verdicts("A|acq(l)|\nB|racq(l)|\n", "2 another thread holds the lock\n");
    assert_verdicts("A|acq(l)|\nA|acq(l)|\nA|rel(l)|\nB|acq(l)|\n", "4 another thread holds the lock\n");
    assert_verdicts("A|racq(l)|\nB|racq(l)|\nA|rrel(l)|\nB|rrel(l)|\nA|acq(l)|\nA|racq(l)|\n", "");
    assert_verdicts("A|racq(l)|\nB|acq(l)|\n", "2 another thread holds the lock for reading\n");
    assert_verdicts("A|racq(l)|\nA|acq(l)|\n",
                    "2 the thread holds the lock for reading, and cannot acquire it for writing as well\n");
    assert_verdicts("A|racq(l)|\nA|rel(l)|\n", "2 the thread holds the lock for reading only\n");
    assert_verdicts("A|acq(l)|\nA|rrel(l)|\n", "2 the thread holds the lock for writing\n");
    assert_verdicts("A|rrel(l)|\n", "1 nobody holds the lock\n");
}

static void threads(void **state)
{
    (void)state;
    assert_verdicts("A|fork(B)|\nB|w(x)|\nA|join(B)|\nC|w(x)|\nA|join(C)|\n", "");
    assert_verdicts("A|fork(A)|\n", "1 a thread forks itself\n");
    assert_verdicts("A|fork(B)|\nA|fork(B)|\n", "2 the thread was forked before\n");
    assert_verdicts("B|w(x)|\nA|fork(B)|\n", "2 the thread acted before it was forked\n");
    assert_verdicts("B|w(x)|\nA|join(B)|\nA|fork(B)|\n", "3 the thread was joined before\n");
    assert_verdicts("A|join(A)|\n", "1 a thread joins itself\n");
    assert_verdicts("A|join(B)|\n", "1 the thread was never seen\n");
    assert_verdicts("A|fork(B)|\nA|join(B)|\nA|join(B)|\n", "3 the thread was joined before\n");
    assert_verdicts("A|fork(B)|\nA|join(B)|\nB|w(x)|\n", "3 the thread was joined before\n");
    assert_verdicts("A|fork(B)|\nB|acq(l)|\nA|join(B)|\n", "3 the thread still holds a lock\n");
    assert_verdicts("A|fork(B)|\nB|racq(l)|\nA|join(B)|\n", "3 the thread still holds a lock\n");
}

static void identities(void **state)
{
    (void)state;
    assert_verdicts("A|acq(l)|\nA|ident(B)|\nA|rel(l)|\n", "3 another thread holds the lock\n");
    assert_verdicts("A|ident(B)|\nA|acq(l)|\nA|ident(A)|\nB|rel(l)|\n", "");
}

static void memory(void **state)
{
    (void)state;
    assert_verdicts("A|free(0x10:8)|\nA|r(0x10)|\n", ""); /* who knows what was there before the trace began */
    assert_verdicts(
        "A|alloc(0x10:16)|\nA|free(0x10:16)|\nA|r(0x1f)|\nA|w(0x20)|\nA|alloc(0x18:8)|\nA|w(0x1f)|\nA|w(0x17)|\n",
        "3 the memory is freed\n7 the memory is freed\n");
    assert_verdicts("A|alloc(0x10:16)|\nA|free(0x10:16)|\nA|free(0x10:16)|\n", "3 the memory is freed already\n");
    assert_verdicts("A|alloc(o)|\nA|free(o)|\nA|r(o)|\nA|commit(r:o)|\nA|copy(o,p)|\nA|copy(p,o)|\n",
                    "3 the memory is freed\n4 the memory is freed\n5 the memory is freed\n6 the memory is freed\n");
    assert_verdicts("A|copy(0x10,0x14:8)|\nA|copy(0x10,0x18:8)|\nA|copy(x,x)|\n", ""); /* a collector may slide an object */
}

static void conditions_and_samples(void **state)
{
    (void)state;
    assert_verdicts("A|wait(c)|\nA|sig(c)|\nB|wait(c)|\n", "1 nobody has signalled the condition\n");
    assert_verdicts("A|sbegin|\nA|send|\nB|sbegin|\nA|sbegin|\nA|send|\nA|send|\n",
                    "4 a sampling period is open already\n6 no sampling period is open\n");
}

/* The blocks of memory against a plain array of bytes. */
static void blocks_against_a_model(void **state)
{
    (void)state;
    enum { BYTES = 64 };
    char text[40 * 100];
    for (unsigned seed = 1; seed <= 200; seed++) {
        unsigned char model[BYTES] = { 0 }; /* 0 unknown, 1 live, 2 freed */
        char expected[2000] = "";
        size_t used = 0, noted = 0;
        uint32_t random = seed * 2654435761u;
        for (unsigned line = 1; line <= 60; line++) {
            random = random * 1664525u + 1013904223u;
            unsigned start = random >> 8 & 63, size = 1 + (random >> 16) % 24, kind = random >> 28;
            if (start + size > BYTES)
                size = BYTES - start;
            const char *word = kind < 5 ? "alloc" : kind < 10 ? "free" : "copy";
            bool live = false, freed = false;
            for (unsigned i = start; i < start + size; i++) {
                live |= model[i] == 1;
                freed |= model[i] == 2;
            }
            if (kind < 5 || (kind < 10 && live))
                memset(model + start, kind < 5 ? 1 : 2, size);
            if (kind < 10)
                used += (size_t)snprintf(text + used, sizeof text - used, "A|%s(0x%x:%u)|\n", word, 0x100 + start, size);
            else /* a copy to a far place touches its source as one range */
                used += (size_t)snprintf(text + used, sizeof text - used, "A|copy(0x%x,0x9000:%u)|\n", 0x100 + start, size);
            if (kind >= 5 && freed)
                noted += (size_t)snprintf(expected + noted, sizeof expected - noted, "%u the memory is freed%s\n", line,
                                          kind < 10 ? " already" : "");
        }
        assert_verdicts(text, expected);
    }
}

static void generated_traces_are_well_formed(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct rf_generate_options options;
        struct trace made;
        struct verdicts verdicts = { 0 };
        rf_generate_defaults(&options, seed % 8 ? RF_SHAPE_RANDOM : RF_SHAPE_PROGRAM);
        options.seed = seed;
        options.length = seed % 8 ? 150 : 3000;
        options.race_rate = 0.2;
        options.bytes = seed % 3 == 0;
        options.threads = 1 + seed % 6;
        options.weights[RF_SAMPLE_BEGIN] = options.weights[RF_SAMPLE_END] = 2;
        options.weights[RF_IDENTITY] = seed % 5 == 0 ? 2 : 0;
        struct bytes bytes = generate(&options, RF_FORMAT_RFT, &made);
        check_memory(bytes.at, bytes.size, RF_FORMAT_RFT, &verdicts);
        assert_string_equal(verdicts.text, "");
        assert_true(made.count > 0 && made.numbers[made.count - 1] <= options.length);
        if (options.shape == RF_SHAPE_PROGRAM)
            assert_int_equal(made.events[made.count - 1].op, options.threads > 1 ? RF_JOIN : made.events[made.count - 1].op);
        trace_free(&made);
        free(bytes.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks),
        cmocka_unit_test(threads),
        cmocka_unit_test(identities),
        cmocka_unit_test(memory),
        cmocka_unit_test(conditions_and_samples),
        cmocka_unit_test(blocks_against_a_model),
        cmocka_unit_test(generated_traces_are_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
