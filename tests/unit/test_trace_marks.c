/* The mark of the runtime system's events in both formats, and the views of one execution. */
#include "tests/unit/trace_files.h"

static const char marked[] = "main|w(0x1000:8)|a\n"
                             "main|~w(0x1000:8)|b\n"
                             "main|~r(0x1003:20)|b\n"
                             "main|~r(0x1017:8)|b\n"
                             "main|~acq(0x20)|gc\n"
                             "main|~alloc(0x2000:33554432)|gc\n"
                             "main|alloc(0x2000:64)|gc\n"
                             "main|~copy(0x2000,0x2040:64)|gc\n"
                             "main|copy(0x2000,0x2010:64)|gc\n"
                             "main|~commit(r:0x10;w:0x20:16)|gc\n"
                             "main|commit(r:0x10;w:0x20:16)|gc\n"
                             "main|~rel(0x20)|gc\n"
                             "main|~bar(0x30)|gc\n"
                             "main|ident(green)|\n"
                             "main|w(0x1000:8)|c\n";

static void marks_survive_both_formats(void **state)
{
    (void)state;
    struct trace std, rft;
    read_text(marked, &std, false);
    assert_string_equal(std.error, "");
    struct bytes binary = convert(marked, strlen(marked), RF_FORMAT_STD, RF_FORMAT_RFT);
    read_memory(binary.at, binary.size, RF_FORMAT_RFT, &rft, false);
    assert_string_equal(rft.error, "");
    assert_same_events(&std, &rft);
    size_t with = 0;
    for (size_t i = 0; i < std.count; i++) {
        assert_int_equal(std.events[i].system, rft.events[i].system);
        with += std.events[i].system;
    }
    assert_true(with > 10 && with < std.count);
    struct bytes text = convert(binary.at, binary.size, RF_FORMAT_RFT, RF_FORMAT_STD);
    assert_int_equal(text.size, strlen(marked));
    assert_memory_equal(text.at, marked, text.size);
    trace_free(&std);
    trace_free(&rft);
    free(binary.at);
    free(text.at);
}

/* One line for each event that is left, without its site. */
static void assert_view(const char *text, unsigned view, const char *expected)
{
    char *error = NULL, shown[4000] = "", line[200];
    struct rf_reader *reader = rf_reader_open_memory(text, strlen(text), RF_FORMAT_STD, &error);
    assert_non_null(reader);
    rf_reader_view(reader, view);
    struct rf_batch batch;
    for (int again = 0; again < 2; again++) { /* and after a rewind */
        size_t used = 0;
        while (rf_reader_next(reader, &batch) == RF_TRACE_MORE)
            for (const struct rf_event *event = batch.events; event < batch.events + batch.count; event++) {
                if (event->op == RF_COPY_TO)
                    continue;
                assert_int_equal(event->system, 0);
                rf_reader_print(reader, event, line, sizeof line);
                *strrchr(line, '|') = 0;
                used += (size_t)snprintf(shown + used, sizeof shown - used, "%s\n", line);
            }
        assert_string_equal(rf_reader_error(reader), "");
        assert_string_equal(shown, expected);
        assert_true(rf_reader_rewind(reader));
    }
    rf_reader_close(reader);
}

static const char small[] =
    "K|w(a)|\nK|~w(b)|\nK|~acq(l)|\nK|acq(m)|\nK|alloc(c)|\nK|~alloc(d)|\nK|copy(e,f)|\nK|~copy(g,h)|\n"
    "K|~commit(r:i)|\n";

static void a_view_leaves_out(void **state)
{
    (void)state;
    assert_view(small, RF_VIEW_PROGRAM, "K|w(a)\nK|acq(m)\nK|alloc(c)\nK|copy(e,f)\n");
    assert_view(small, RF_VIEW_SYSTEM_MEMORY,
                "K|w(a)\nK|w(b)\nK|acq(m)\nK|alloc(c)\nK|alloc(d)\nK|copy(e,f)\nK|copy(g,h)\n");
    assert_view(small, RF_VIEW_SYSTEM_SYNC, "K|w(a)\nK|acq(l)\nK|acq(m)\nK|alloc(c)\nK|copy(e,f)\nK|commit(r:i)\nK|r(i)\n");
    assert_view(small, RF_VIEW_NO_CLEAR, "K|w(a)\nK|acq(m)\nK|copy(e,f)\n");
    assert_view(small, RF_VIEW_NO_COPY, "K|w(a)\nK|acq(m)\nK|alloc(c)\n");
}

static void without_identities(void **state)
{
    (void)state;
    static const char text[] =
        "M|fork(U)|\nK|ident(U)|\nK|w(x)|\nK|ident(K)|\nL|ident(U)|\nL|w(x)|\nL|ident(L)|\nM|join(U)|\n";
    assert_view(text, RF_VIEW_PROGRAM, "M|fork(U)\nU|w(x)\nU|w(x)\nM|join(U)\n");
    assert_view(
        text, RF_VIEW_NO_IDENTITY,
        "M|fork(U)\nM|sig(0x4000000000000001)\nK|wait(0x4000000000000001)\nK|w(x)\nK|sig(0x6000000000000001)\nL|w(x)\n"
        "L|sig(0x6000000000000001)\nM|wait(0x6000000000000001)\nM|join(U)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_survive_both_formats),
        cmocka_unit_test(a_view_leaves_out),
        cmocka_unit_test(without_identities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
