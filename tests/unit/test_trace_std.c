/* The syntax of STD text, and what barriers and identities become. */
#include "tests/unit/trace_files.h"

/* Events as one line each: number thread op addr-or-name size. */
static void assert_events(const char *text, bool resolved, const char *expected)
{
    struct trace trace;
    char *error = NULL, shown[8000] = "";
    struct rf_reader *reader = rf_reader_open_memory(text, strlen(text), RF_FORMAT_STD, &error);
    assert_non_null(reader);
    trace = (struct trace){ 0 };
    read_trace(reader, &trace, resolved);
    size_t used = 0;
    for (size_t i = 0; i < trace.count; i++) {
        const struct rf_event *event = &trace.events[i];
        char line[200];
        if (event->op == RF_COMMIT)
            snprintf(line, sizeof line, "%s|commit %u", rf_reader_thread(reader, event->thread), (unsigned)event->size);
        else
            rf_reader_print(reader, event, line, sizeof line);
        used += (size_t)snprintf(shown + used, sizeof shown - used, "%llu %s\n", (unsigned long long)trace.numbers[i], line);
    }
    assert_string_equal(trace.error, "");
    assert_int_equal(trace.status, RF_TRACE_END);
    assert_string_equal(shown, expected);
    trace_free(&trace);
    rf_reader_close(reader);
}

static void the_words(void **state)
{
    (void)state;
    assert_events(
        "T1|r(x)|5\nT1|w(x)|6\nT1|acq(l)|\nT1|rel(l)\nT1|fork(T2)|\nT1|join(T2)|\nT1|vr(v)|\nT1|vw(v)|\n"
        "T1|racq(l)|\nT1|rrel(l)|\nT1|sig(c)|\nT1|wait(c)|\nT1|bar(b)|\nT1|alloc(x)|\nT1|free(x)|\nT1|sbegin|\n"
        "T1|send()|\nT1|ident(T2)|",
        false,
        "1 T1|r(x)|5\n2 T1|w(x)|6\n3 T1|acq(l)|\n4 T1|rel(l)|\n5 T1|fork(T2)|\n6 T1|join(T2)|\n7 T1|vr(v)|\n"
        "8 T1|vw(v)|\n9 T1|racq(l)|\n10 T1|rrel(l)|\n11 T1|sig(c)|\n12 T1|wait(c)|\n13 T1|bar(b)|\n14 T1|alloc(x)|\n"
        "15 T1|free(x)|\n16 T1|sbegin()|\n17 T1|send()|\n18 T1|ident(T2)|\n");
}

static void white_space_and_comments(void **state)
{
    (void)state;
    assert_events(
        "\n# nothing\r\n  main thread | r ( x y ) | a file.c:3 \r\n\t#T|r(x)|1\nT|w(a#b)|s#1 # why\n   \nT|w(f(a))|x|y",
        false, "3 main thread|r(x y)|a file.c:3\n5 T|w(a#b)|s#1\n7 T|w(f(a))|x|y\n");
    assert_events("", false, "");
    assert_events("# only\n", false, "");
}

static void addresses_and_sizes(void **state)
{
    (void)state;
    assert_events("T|r(0x10)|\nT|w(0X1F:1)|\nT|r(0x10:8)|\nT|r(0x14:8)|\nT|w(0x11:20)|\nT|acq(0xabc)|\nT|alloc(0x100:64)|\n"
                  "T|copy(0x10,0x20:16)|\nT|copy(0x10:4,0x20:4)|\nT|alloc(0x1000:16777210)|\n",
                  false,
                  "1 T|r(0x10)|\n2 T|w(0x1f)|\n3 T|r(0x10:8)|\n4 T|r(0x14:4)|\n4 T|r(0x18:4)|\n"
                  "5 T|w(0x11:7)|\n5 T|w(0x18:8)|\n5 T|w(0x20:5)|\n6 T|acq(0xabc)|\n7 T|alloc(0x100:64)|\n"
                  "8 T|copy(0x10:16,0x20:16)|\n8 T|copied(0x20:16)|\n9 T|copy(0x10:4,0x20:4)|\n9 T|copied(0x20:4)|\n"
                  "10 T|alloc(0x1000:16777208)|\n10 T|alloc(0x1000ff8:2)|\n");
}

static void fields_follow_their_object(void **state)
{
    (void)state;
    assert_events("T|w(o.f)|\nT|w(o[1].g)|\nT|w(oo.f)|\nT|alloc(o)|\nT|w(o.h)|\nT|free(o[1])|\nT|w(p.k)|\nT|copy(o,p)|\n",
                  false,
                  "1 T|w(o.f)|\n2 T|w(o[1].g)|\n3 T|w(oo.f)|\n4 T|alloc(o)|\n4 T|alloc(o.f)|\n4 T|alloc(o[1].g)|\n"
                  "5 T|w(o.h)|\n6 T|free(o[1])|\n6 T|free(o[1].g)|\n7 T|w(p.k)|\n"
                  "8 T|copy(o,p)|\n8 T|copied(p)|\n8 T|copy(o.f,p.f)|\n8 T|copied(p.f)|\n"
                  "8 T|copy(o[1].g,p[1].g)|\n8 T|copied(p[1].g)|\n8 T|copy(o.h,p.h)|\n8 T|copied(p.h)|\n"
                  "8 T|copy(o[1],p[1])|\n8 T|copied(p[1])|\n8 T|copy(o.k,p.k)|\n8 T|copied(p.k)|\n");
}

static void commits(void **state)
{
    (void)state;
    assert_events("T|commit(r:a,0xc:8;w:c)|s\nT|commit()|\nT|commit(w:x)|\nT|commit( r: a , b ; w: )|\n", false,
                  "1 T|commit 4\n1 T|r(a)|s\n1 T|r(0xc:4)|s\n1 T|r(0x10:4)|s\n1 T|w(c)|s\n2 T|commit 0\n"
                  "3 T|commit 1\n3 T|w(x)|\n4 T|commit 2\n4 T|r(a)|\n4 T|r(b)|\n");
}

static void errors_name_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *line, *error;
    } bad[] = {
        { "hello", "not THREAD|op(argument)|site: 'hello'" },
        { "T|", "the operation is missing" },
        { "T|(x)|", "the operation is missing" },
        { "|r(x)|", "the name of a thread is missing" },
        { "T|frob(x)|", "unknown operation 'frob'" },
        { "T|x(x)|", "unknown operation 'x'" },
        { "T|r(x|", "')' is missing after 'r(x'" },
        { "T|r x)|", "unknown operation 'r x)'" },
        { "T|acq|", "'(' is missing after 'acq'" },
        { "T|r()|", "a variable is missing" },
        { "T|acq( )|", "the name of a lock or other object is missing" },
        { "T|fork()|", "the name of a thread is missing" },
        { "T|r(0x)|", "bad address '0x'" },
        { "T|r(0xfoo)|", "bad address '0xfoo'" },
        { "T|r(0x10:)|", "bad address '0x10:'" },
        { "T|r(0x10:4k)|", "bad size in '0x10:4k'" },
        { "T|r(0x10:0)|", "the size in '0x10:0' is zero" },
        { "T|r(0x10:99999999)|", "the size in '0x10:99999999' is too large" },
        { "T|alloc(0x10:99999999999999)|", "the size in '0x10:99999999999999' is too large" },
        { "T|r(0x1000000000000000)|", "address '0x1000000000000000' is too large" },
        { "T|r(0x11111111111111111)|", "address '0x11111111111111111' is too large" },
        { "T|alloc(0xfffffffffffffff:2)|", "address '0xfffffffffffffff:2' is too large" },
        { "T|acq(0x10:4)|", "an object has no size: '0x10:4'" },
        { "T|copy(a)|", "copy needs two variables" },
        { "T|copy(a,0x10)|", "copy needs two names or two addresses" },
        { "T|copy(a,a.b)|", "copy of a name into itself" },
        { "T|copy(0x10:4,0x20:8)|", "the two sides of a copy differ in size" },
        { "T|commit(x)|", "commit takes r:... and w:..., not 'x'" },
        { "T|commit(r:a,,b)|", "a variable is missing" },
        { "T|sbegin(x)|", "sbegin takes no argument" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200], expected[200];
        struct trace trace;
        snprintf(text, sizeof text, "T|w(x)|\n\n%s\nT|w(y)|\n", bad[i].line);
        snprintf(expected, sizeof expected, "memory:3: %s", bad[i].error);
        read_text(text, &trace, true);
        assert_string_equal(trace.error, expected);
        assert_int_equal(trace.status, RF_TRACE_ERROR);
        assert_int_equal(trace.count, 1); /* what is before the bad line is delivered */
        trace_free(&trace);
    }
    struct trace trace;
    read_memory("T|r(x)|\nT|r(a\0b)|\n", 18, RF_FORMAT_STD, &trace, true);
    assert_string_equal(trace.error, "memory:2: the line holds a zero byte");
    trace_free(&trace);
}

static void long_lines(void **state)
{
    (void)state;
    size_t size = (17u << 20) + 20;
    char *text = malloc(size);
    struct trace trace;
    memset(text, 'x', size);
    memcpy(text, "T|r(x)|\nT|r(", 12);
    read_memory(text, 3u << 20, RF_FORMAT_STD, &trace, true);
    assert_non_null(strstr(trace.error, "memory:2: ')' is missing"));
    trace_free(&trace);
    memcpy(text + (3u << 20) - 2, ")\n", 2);
    read_memory(text, 3u << 20, RF_FORMAT_STD, &trace, true);
    assert_int_equal(trace.status, RF_TRACE_END);
    assert_int_equal(trace.count, 2);
    trace_free(&trace);
    memset(text + 12, 'x', size - 12);
    read_memory(text, size, RF_FORMAT_STD, &trace, true);
    assert_string_equal(trace.error, "memory:2: the line is too long");
    trace_free(&trace);
    free(text);
}

static void barriers_become_signals_and_waits(void **state)
{
    (void)state;
#define K0 "0x2000000000000000"
#define K1 "0x2000000000000001"
    assert_events("A|bar(b)|1\nB|bar(b)|2\nC|w(x)|\nB|w(y)|3\nA|w(z)|4\nA|bar(b)|5\nA|w(x)|6\n", true,
                  "1 A|sig(" K0 ")|1\n2 B|sig(" K0 ")|2\n3 C|w(x)|\n"
                  "4 A|wait(" K0 ")|1\n4 B|wait(" K0 ")|2\n4 B|forget(" K0 ")|2\n4 B|w(y)|3\n5 A|w(z)|4\n"
                  "6 A|sig(" K1 ")|5\n7 A|wait(" K1 ")|5\n7 A|forget(" K1 ")|5\n7 A|w(x)|6\n");
    /* The next arrival ends the round too, at this barrier or another; so does a join. The end of the trace just ends. */
    assert_events(
        "A|bar(b)|\nA|bar(b)|\nB|bar(c)|\nC|join(B)|\nA|bar(c)|\n", true,
        "1 A|sig(" K0 ")|\n2 A|wait(" K0 ")|\n2 A|forget(" K0 ")|\n2 A|sig(" K1 ")|\n"
        "3 B|sig(0x2000000000000002)|\n4 B|wait(0x2000000000000002)|\n4 B|forget(0x2000000000000002)|\n4 C|join(B)|\n"
        "5 A|wait(" K1 ")|\n5 A|forget(" K1 ")|\n5 A|sig(0x2000000000000003)|\n");
}

static void identities_change_the_performer(void **state)
{
    (void)state;
    assert_events(
        "A|w(x)|\nA|ident(B)|\nA|w(x)|\nB|w(y)|\nC|join(A)|\nA|fork(A)|\nA|ident(C)|\nA|w(x)|\nA|ident(A)|\nA|w(x)|\n", true,
        "1 A|w(x)|\n3 B|w(x)|\n4 B|w(y)|\n5 C|join(A)|\n6 B|fork(A)|\n8 C|w(x)|\n10 A|w(x)|\n");
    /* An identity that arrives at a barrier is the one that waits there. */
    assert_events("A|ident(B)|\nA|bar(b)|\nB|w(x)|\n", true,
                  "2 B|sig(" K0 ")|\n3 B|wait(" K0 ")|\n3 B|forget(" K0 ")|\n3 B|w(x)|\n");
}

/* Rounds and identities go on over batches: the same trace, once with a long prefix that is not theirs. */
static void state_survives_batches(void **state)
{
    (void)state;
    enum { LINES = 40000 };
    char *text = malloc(LINES * 10 + 100), *at = text;
    at += sprintf(at, "A|bar(b)|\nD|ident(E)|\n");
    for (int i = 0; i < LINES; i++)
        at += sprintf(at, "%c|w(x)|\n", i % 2 ? 'C' : 'D');
    at += sprintf(at, "B|bar(b)|\nA|w(x)|\n");
    struct trace trace;
    read_text(text, &trace, true);
    assert_int_equal(trace.count, 1 + LINES + 1 + 2 + 1 + 1);
    assert_int_equal(trace.events[LINES + 1].op, RF_SIGNAL);
    assert_int_equal(trace.events[LINES + 2].op, RF_WAIT);
    assert_int_equal(trace.events[LINES + 4].op, RF_FORGET);
    assert_int_equal(trace.events[LINES + 1].addr, trace.events[0].addr);
    for (size_t i = 1; i <= LINES; i++)
        assert_int_not_equal(trace.events[i].thread, 1); /* D performs nothing */
    trace_free(&trace);
    free(text);
}

static void names_that_text_cannot_hold(void **state)
{
    (void)state;
    char path[64], *error = NULL;
    temporary(path);
    struct rf_writer *writer = rf_writer_open(path, RF_FORMAT_STD, &error);
    rf_writer_thread(writer, 0, "#1|main");
    rf_writer_thread(writer, 1, "");
    rf_writer_site(writer, 1, " f #2\n|");
    rf_writer_variable(writer, RF_NAMED_BASE, "0x10");
    rf_writer_variable(writer, RF_NAMED_BASE + 8, "a,b;c");
    rf_writer_event(writer, 1, &(struct rf_event){ .addr = RF_NAMED_BASE, .size = 8, .site = 1 });
    rf_writer_event(writer, 2, &(struct rf_event){ .addr = 1, .op = RF_FORK });
    rf_writer_event(writer, 3, &(struct rf_event){ .op = RF_COMMIT, .size = 1 });
    rf_writer_event(writer, 3,
                    &(struct rf_event){ .addr = RF_NAMED_BASE + 8, .size = 8, .op = RF_COMMIT_WRITE, .number = 3 });
    assert_true(rf_writer_close(writer, &error));
    struct bytes bytes = slurp(path);
    bytes.at = realloc(bytes.at, bytes.size + 1);
    bytes.at[bytes.size] = 0;
    assert_string_equal((char *)bytes.at, "%231%7cmain|r(%30x10)|%20f %232%0a|\n%231%7cmain|fork(%)|\n"
                                          "%231%7cmain|commit(w:a%2cb%3bc)|\n");
    struct trace trace;
    read_text((char *)bytes.at, &trace, false);
    assert_string_equal(trace.error, "");
    assert_int_equal(trace.count, 4);
    trace_free(&trace);
    free(bytes.at);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words),
        cmocka_unit_test(white_space_and_comments),
        cmocka_unit_test(addresses_and_sizes),
        cmocka_unit_test(fields_follow_their_object),
        cmocka_unit_test(commits),
        cmocka_unit_test(errors_name_their_line),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(barriers_become_signals_and_waits),
        cmocka_unit_test(identities_change_the_performer),
        cmocka_unit_test(state_survives_batches),
        cmocka_unit_test(names_that_text_cannot_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
