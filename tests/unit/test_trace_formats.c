/* Round trips, damage, pipes and look-ups, in both formats. */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "tests/unit/trace_files.h"
#include "trace/rft.h"

static void every_operation(struct rf_generate_options *options, uint64_t seed)
{
    rf_generate_defaults(options, RF_SHAPE_RANDOM);
    options->seed = seed;
    options->length = 20 + seed % 200;
    options->bytes = seed % 2;
    options->weights[RF_SAMPLE_BEGIN] = options->weights[RF_SAMPLE_END] = options->weights[RF_IDENTITY] = 2;
}

static void round_trips_of_random_traces(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct rf_generate_options options;
        struct trace made, std, rft, again;
        every_operation(&options, seed);
        struct bytes text = generate(&options, RF_FORMAT_STD, &made);
        trace_free(&made);
        struct bytes binary = generate(&options, RF_FORMAT_RFT, &made);
        /* .rft keeps the indices that the generator gave. */
        read_memory(binary.at, binary.size, RF_FORMAT_RFT, &rft, false);
        assert_int_equal(rft.status, RF_TRACE_END);
        assert_same_events(&made, &rft);
        /* A text numbers its names anew, so it is compared with what it becomes. */
        read_memory(text.at, text.size, RF_FORMAT_STD, &std, false);
        assert_string_equal(std.error, "");
        assert_int_equal(std.count, made.count);
        struct bytes there = convert(text.at, text.size, RF_FORMAT_STD, RF_FORMAT_RFT);
        read_memory(there.at, there.size, RF_FORMAT_RFT, &again, false);
        assert_same_events(&std, &again);
        assert_string_equal(std.names, again.names);
        struct bytes back = convert(there.at, there.size, RF_FORMAT_RFT, RF_FORMAT_STD);
        assert_int_equal(back.size, text.size);
        assert_memory_equal(back.at, text.at, text.size);
        struct bytes direct = convert(binary.at, binary.size, RF_FORMAT_RFT, RF_FORMAT_STD);
        assert_int_equal(direct.size, text.size);
        assert_memory_equal(direct.at, text.at, text.size);
        free(text.at), free(binary.at), free(there.at), free(back.at), free(direct.at);
        trace_free(&made), trace_free(&std), trace_free(&rft), trace_free(&again);
    }
}

static void round_trip_of_a_program(void **state)
{
    (void)state;
    struct rf_generate_options options;
    struct trace made, rft;
    rf_generate_defaults(&options, RF_SHAPE_PROGRAM);
    options.length = 200000;
    options.race_rate = 0.1;
    struct bytes binary = generate(&options, RF_FORMAT_RFT, &made);
    read_memory(binary.at, binary.size, RF_FORMAT_AUTO, &rft, true);
    assert_int_equal(rft.status, RF_TRACE_END);
    assert_same_events(&made, &rft);
    free(binary.at);
    trace_free(&made), trace_free(&rft);
}

/* Lines that are cut into several events, gaps in the numbers, names with fields. */
static const char hard_text[] = "# a comment\n"
                                "main|fork(w 1)|m.c:1\n"
                                "\n"
                                "main|w(0x601044:16)|m.c:2\n"
                                "main|alloc(0x10000000:50000000)|m.c:3\n"
                                "w 1|w(o.f)|a|b\n"
                                "w 1|w(o[3])|\n"
                                "main|alloc(o)|m.c:4\n"
                                "main|w(p.g)|\n"
                                "main|copy(o,p)|m.c:5\n"
                                "main|copy(0x20000000,0x30000000:40000000)|\n"
                                "\n\n\n"
                                "main|commit(r:a,0x13:14;w:c,o.f)|m.c:6\n"
                                "main|commit()|\n"
                                "w 1|racq(0x5000)|\n"
                                "main|r(0x601047:3)|\n"
                                "main|free(o)|m.c:7\n";

static void numbers_and_cut_events_survive(void **state)
{
    (void)state;
    struct trace std, rft, again;
    read_text(hard_text, &std, false);
    assert_string_equal(std.error, "");
    struct bytes binary = convert(hard_text, sizeof hard_text - 1, RF_FORMAT_STD, RF_FORMAT_RFT);
    read_memory(binary.at, binary.size, RF_FORMAT_AUTO, &rft, false);
    assert_same_events(&std, &rft);
    assert_string_equal(std.names, rft.names);
    struct bytes text = convert(binary.at, binary.size, RF_FORMAT_RFT, RF_FORMAT_STD);
    read_memory(text.at, text.size, RF_FORMAT_STD, &again, false);
    assert_same_events(&std, &again);
    free(binary.at), free(text.at);
    trace_free(&std), trace_free(&rft), trace_free(&again);
}

static void numbers_beyond_32_bits(void **state)
{
    (void)state;
    char path[64], *error = NULL;
    temporary(path);
    struct rf_writer *writer = rf_writer_open(path, RF_FORMAT_RFT, &error);
    rf_writer_thread(writer, 0, "T");
    static const uint64_t numbers[] = {
        7, 7, UINT64_C(0xfffffffe), UINT64_C(0x100000003), UINT64_C(0x500000003), UINT64_C(0x500000004), UINT64_MAX - 1
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        rf_writer_event(writer, numbers[i], &(struct rf_event){ .addr = 16, .size = 8, .op = RF_WRITE });
    assert_true(rf_writer_close(writer, &error));
    struct bytes bytes = slurp(path);
    struct trace trace;
    read_memory(bytes.at, bytes.size, RF_FORMAT_RFT, &trace, true);
    assert_int_equal(trace.status, RF_TRACE_END);
    assert_int_equal(trace.count, sizeof numbers / sizeof *numbers);
    assert_memory_equal(trace.numbers, numbers, sizeof numbers);
    trace_free(&trace);
    free(bytes.at);
    unlink(path);
}

static struct bytes small_binary(struct trace *made)
{
    struct rf_generate_options options;
    every_operation(&options, 11);
    options.length = 60;
    return generate(&options, RF_FORMAT_RFT, made);
}

/* Every event that is delivered is the right one. */
static void assert_prefix(const struct trace *part, const struct trace *whole)
{
    assert_true(part->count <= whole->count);
    struct trace head = *whole;
    head.count = part->count;
    assert_same_events(part, &head);
}

static void cut_at_every_offset(void **state)
{
    (void)state;
    struct trace made, part;
    struct bytes binary = small_binary(&made);
    for (size_t size = 0; size < binary.size; size++) {
        unsigned char *copy = malloc(size + 1); /* of this very size: a sanitizer sees a byte too many */
        memcpy(copy, binary.at, size);
        read_memory(copy, size, RF_FORMAT_RFT, &part, false);
        assert_int_equal(part.status, RF_TRACE_TRUNCATED);
        assert_non_null(strstr(part.error, "offset "));
        assert_non_null(strstr(part.error, " events are good"));
        assert_prefix(&part, &made);
        trace_free(&part);
        free(copy);
    }
    trace_free(&made);
    free(binary.at);
}

static void every_flipped_byte_is_noticed(void **state)
{
    (void)state;
    struct trace made, part;
    struct bytes binary = small_binary(&made);
    for (size_t i = 0; i < binary.size; i++) {
        for (unsigned flip = 1; flip < 256; flip = flip * 4 + 3) {
            binary.at[i] ^= (unsigned char)flip;
            read_memory(binary.at, binary.size, RF_FORMAT_RFT, &part, false);
            assert_true(part.status == RF_TRACE_TRUNCATED || part.status == RF_TRACE_ERROR);
            assert_true(strlen(part.error) > 0);
            assert_prefix(&part, &made);
            trace_free(&part);
            binary.at[i] ^= (unsigned char)flip;
        }
    }
    trace_free(&made);
    free(binary.at);
}

static void a_cut_keeps_the_chunks_before_it(void **state)
{
    (void)state;
    struct rf_generate_options options;
    struct trace made, part;
    rf_generate_defaults(&options, RF_SHAPE_PROGRAM);
    options.length = 100000;
    struct bytes binary = generate(&options, RF_FORMAT_RFT, &made);
    read_memory(binary.at, binary.size - 100, RF_FORMAT_RFT, &part, true);
    assert_int_equal(part.status, RF_TRACE_TRUNCATED);
    assert_true(part.count > 50000);
    assert_prefix(&part, &made);
    char expected[60];
    snprintf(expected, sizeof expected, "; %zu events are good", part.count);
    assert_non_null(strstr(part.error, expected));
    trace_free(&made), trace_free(&part);
    free(binary.at);
}

static void bytes_after_the_end_are_noticed(void **state)
{
    (void)state;
    struct trace made, part;
    struct bytes binary = small_binary(&made);
    binary.at = realloc(binary.at, binary.size + 1);
    binary.at[binary.size] = 0;
    read_memory(binary.at, binary.size + 1, RF_FORMAT_RFT, &part, false);
    assert_int_equal(part.status, RF_TRACE_TRUNCATED);
    assert_same_events(&part, &made);
    trace_free(&made), trace_free(&part);
    free(binary.at);
}

/* A chunk whose hash is right may still say what cannot be. */
static void chunks_that_lie_are_noticed(void **state)
{
    (void)state;
    static const struct {
        struct rf_event events[2];
        uint32_t count, threads, sites;
        const char *flaw;
    } chunks[] = {
        { { { .op = RF_READ, .size = 8, .addr = 8, .site = 3 } }, 1, 1, 4, NULL },
        { { { .op = RF_READ, .size = 8, .addr = 8, .site = 3 } }, 1, 1, 3, "unknown site" },
        { { { .op = RF_ACQUIRE, .addr = 8, .site = 3 } }, 1, 1, 3, "unknown site" },
        { { { .op = RF_WRITE, .size = 4, .addr = 4, .thread = 2 } }, 1, 3, 1, NULL },
        { { { .op = RF_WRITE, .size = 4, .addr = 4, .thread = 2 } }, 1, 2, 1, "unknown thread" },
        { { { .op = RF_WRITE, .size = 4, .addr = 6 } }, 1, 1, 1, "an access is not inside a granule" },
        { { { .op = RF_JOIN, .addr = 1 } }, 1, 1, 1, "unknown thread" },
        { { { .op = RF_FREE, .addr = UINT64_MAX - 3, .size = 8 } }, 1, 1, 1, "impossible range of memory" },
        { { { .op = RF_COPY, .addr = 8, .size = 8 }, { .op = RF_COPY_TO, .addr = 80, .size = 8 } }, 2, 1, 1, NULL },
        { { { .op = RF_COPY, .addr = 8, .size = 8 }, { .op = RF_COPY_TO, .addr = 80, .size = 16 } }, 2, 1, 1,
          "the two sides of a copy differ in size" },
        { { { .op = RF_COPY_TO, .addr = 8, .size = 8 } }, 1, 1, 1, "a part without its commit or copy" },
        { { { .op = RF_COMMIT, .size = 1 }, { .op = RF_COPY_TO, .addr = 8, .size = 8 } }, 2, 1, 1,
          "a commit or copy lacks parts" },
        { { { .op = RF_COMMIT, .size = 2 }, { .op = RF_COMMIT_READ, .addr = 8, .size = 8 } }, 2, 1, 1,
          "a commit or copy lacks parts" },
    };
    struct rf_rft_encoder *encoder = rf_rft_encoder_new();
    struct rf_event events[2], others[2];
    struct rf_share shares[2] = { { .events = events }, { .events = others } };
    struct rf_rft_decoded decoded = { .shares = shares };
    size_t size;
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        const unsigned char *bytes = rf_rft_encode(encoder, chunks[i].events, chunks[i].count, 0, &size);
        unsigned char *raw = calloc(1, size + RF_RFT_SLACK);
        memcpy(raw, bytes, size);
        struct rf_rft_header header = { .type = RF_RFT_EVENTS, .raw = (uint32_t)size, .events = chunks[i].count };
        struct rf_rft_limits limits = { chunks[i].threads, chunks[i].sites };
        for (decoded.share_count = 1; decoded.share_count <= 2; decoded.share_count++) {
            shares[0].count = shares[1].count = 0;
            const char *flaw = rf_rft_decode(&header, raw, limits, &decoded);
            assert_int_equal(!flaw, !chunks[i].flaw);
            if (flaw)
                assert_string_equal(flaw, chunks[i].flaw);
        }
        free(raw);
    }
    free(decoded.threads);
    rf_rft_encoder_free(encoder);
}

/* The same chunk of events a second time: its numbers have been. */
static void numbers_that_decrease_are_noticed(void **state)
{
    (void)state;
    struct trace made, part;
    struct bytes binary = small_binary(&made);
    unsigned char *twice = malloc(2 * binary.size);
    size_t at = RF_RFT_FILE_HEADER, to = RF_RFT_FILE_HEADER;
    memcpy(twice, binary.at, RF_RFT_FILE_HEADER);
    while (at < binary.size) {
        struct rf_rft_header header;
        rf_rft_get_header(&header, (const unsigned char *)binary.at + at);
        size_t length = RF_RFT_CHUNK_HEADER + header.packed;
        for (int copies = header.type == RF_RFT_EVENTS ? 2 : 1; copies; copies--, to += length)
            memcpy(twice + to, binary.at + at, length);
        at += length;
    }
    read_memory(twice, to, RF_FORMAT_RFT, &part, false);
    assert_int_equal(part.status, RF_TRACE_TRUNCATED);
    assert_non_null(strstr(part.error, "event numbers decrease"));
    assert_same_events(&part, &made);
    trace_free(&made), trace_free(&part);
    free(binary.at);
    free(twice);
}

struct search {
    struct trace found;
};

static void collect(void *context, uint64_t number, const struct rf_event *event)
{
    trace_add(&((struct search *)context)->found, number, event);
}

/* Looks up every seventh number, and some that do not exist, and compares with the first reading. */
static void look_up(struct rf_reader *reader)
{
    struct trace all = { 0 }, wanted = { 0 };
    struct search search = { 0 };
    read_trace(reader, &all, false);
    assert_int_equal(all.status, RF_TRACE_END);
    uint64_t *numbers = malloc((all.count + 2) * sizeof *numbers), last = 0;
    size_t count = 0;
    numbers[count++] = 0;
    for (size_t i = 0; i < all.count; i++) {
        if (all.numbers[i] % 7 == 3 && all.numbers[i] != last)
            numbers[count++] = last = all.numbers[i];
        if (all.numbers[i] % 7 == 3)
            trace_add(&wanted, all.numbers[i], &all.events[i]);
    }
    numbers[count++] = UINT64_MAX;
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(rf_reader_lookup(reader, numbers, count, collect, &search), RF_TRACE_END);
        assert_same_events(&search.found, &wanted);
        trace_free(&search.found);
    }
    /* One at a time, from the last to the first. */
    for (size_t i = wanted.count > 40 ? wanted.count - 40 : 0; i < wanted.count; i++) {
        rf_reader_lookup(reader, &wanted.numbers[i], 1, collect, &search);
        assert_true(search.found.count >= 1);
        assert_int_equal(search.found.numbers[0], wanted.numbers[i]);
        trace_free(&search.found);
    }
    free(numbers);
    trace_free(&all), trace_free(&wanted);
}

static void look_ups_in(const struct rf_generate_options *options)
{
    static const enum rf_trace_format formats[] = { RF_FORMAT_STD, RF_FORMAT_RFT };
    for (size_t i = 0; i < 2; i++) {
        struct trace made;
        char *error = NULL;
        struct bytes bytes = generate(options, formats[i], &made);
        struct rf_reader *reader = rf_reader_open_memory(bytes.at, bytes.size, formats[i], &error);
        look_up(reader);
        rf_reader_close(reader);
        trace_free(&made);
        free(bytes.at);
    }
}

static void look_ups(void **state)
{
    (void)state;
    struct rf_generate_options options;
    for (uint64_t seed = 0; seed < 50; seed++) {
        every_operation(&options, seed);
        look_ups_in(&options);
    }
    rf_generate_defaults(&options, RF_SHAPE_PROGRAM);
    options.length = 200000;
    look_ups_in(&options);
    /* Fields that are named later must not change what an alloc or copy covered. */
    char *error = NULL;
    static const char text[] = "T|w(o.a)|\nT|copy(o,p)|\nT|alloc(o)|\nT|w(o.b)|\nT|w(p.c)|\nT|copy(o,p)|\nT|w(o.d)|\n"
                               "T|copy(o,q)|\nT|w(q.z)|\nT|alloc(o)|\n";
    struct rf_reader *reader = rf_reader_open_memory(text, sizeof text - 1, RF_FORMAT_STD, &error);
    look_up(reader);
    rf_reader_close(reader);
}

/* A child writes the bytes into a pipe, which becomes standard input. */
static void pipes_are_read_and_spooled(void **state)
{
    (void)state;
    static const enum rf_trace_format formats[] = { RF_FORMAT_STD, RF_FORMAT_RFT };
    int saved = dup(STDIN_FILENO);
    for (size_t i = 0; i < 2; i++) {
        struct rf_generate_options options;
        struct trace made;
        rf_generate_defaults(&options, RF_SHAPE_PROGRAM);
        options.length = 50000;
        struct bytes bytes = generate(&options, formats[i], &made);
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            for (size_t at = 0; at < bytes.size;) {
                ssize_t put = write(ends[1], bytes.at + at, bytes.size - at > 1000 ? 1000 : bytes.size - at);
                if (put < 0)
                    _exit(1);
                at += (size_t)put;
            }
            _exit(0);
        }
        close(ends[1]);
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        char *error = NULL;
        struct rf_reader *reader = rf_reader_open("-", RF_FORMAT_AUTO, &error);
        assert_non_null(reader);
        assert_int_equal(rf_reader_format(reader), formats[i]);
        look_up(reader);
        rf_reader_close(reader);
        int status;
        waitpid(child, &status, 0);
        assert_int_equal(status, 0);
        trace_free(&made);
        free(bytes.at);
    }
    dup2(saved, STDIN_FILENO);
    close(saved);
}

static void write_errors_are_told(void **state)
{
    (void)state;
    char *error = NULL;
    struct rf_writer *writer = rf_writer_open("/dev/full", RF_FORMAT_RFT, &error);
    if (writer) {
        assert_false(rf_writer_close(writer, &error));
        assert_string_equal(error, "/dev/full: No space left on device");
        free(error);
    }
    assert_null(rf_writer_open("/nonexistent/x", RF_FORMAT_STD, &error));
    assert_string_equal(error, "/nonexistent/x: No such file or directory");
    free(error);
    assert_null(rf_reader_open("/nonexistent/x", RF_FORMAT_AUTO, &error));
    assert_string_equal(error, "/nonexistent/x: No such file or directory");
    free(error);
}

static void the_writer_refuses_what_no_reader_takes(void **state)
{
    (void)state;
    static const struct {
        struct rf_event event;
        const char *reason;
    } bad[] = {
        { { .op = RF_COPY_TO, .size = 8 }, "parts" },
        { { .op = RF_WRITE, .size = 0 }, "no size" },
        { { .op = RF_WRITE, .size = 8, .thread = 1 }, "not declared" },
        { { .op = RF_WRITE, .size = 8, .site = 1 }, "not declared" },
        { { .op = RF_FORK, .addr = 1 }, "not declared" },
        { { .op = RF_ALLOC }, "range" },
        { { .op = RF_OP_COUNT }, "operation" },
        { { .op = RF_COMMIT, .size = 1 }, "lacks parts" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[64], *error = NULL;
        temporary(path);
        struct rf_writer *writer = rf_writer_open(path, RF_FORMAT_RFT, &error);
        rf_writer_thread(writer, 0, "T");
        rf_writer_event(writer, 1, &bad[i].event);
        assert_false(rf_writer_close(writer, &error));
        assert_non_null(strstr(error, bad[i].reason));
        free(error);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips_of_random_traces),
        cmocka_unit_test(round_trip_of_a_program),
        cmocka_unit_test(numbers_and_cut_events_survive),
        cmocka_unit_test(numbers_beyond_32_bits),
        cmocka_unit_test(cut_at_every_offset),
        cmocka_unit_test(every_flipped_byte_is_noticed),
        cmocka_unit_test(a_cut_keeps_the_chunks_before_it),
        cmocka_unit_test(bytes_after_the_end_are_noticed),
        cmocka_unit_test(chunks_that_lie_are_noticed),
        cmocka_unit_test(numbers_that_decrease_are_noticed),
        cmocka_unit_test(look_ups),
        cmocka_unit_test(pipes_are_read_and_spooled),
        cmocka_unit_test(write_errors_are_told),
        cmocka_unit_test(the_writer_refuses_what_no_reader_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
