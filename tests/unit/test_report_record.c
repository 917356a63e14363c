/* Messages of the runtime: what is read is what was written, and nothing else is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/record.h"

static bool read_text(struct rf_message *message, const char *text, char error[160])
{
    size_t length = strlen(text);
    char *copy = malloc(length + 1); /* exactly as long, so that the sanitizers see a step too far */
    memcpy(copy, text, length + 1);
    bool good = rf_message_read(message, copy, length, error);
    free(copy);
    return good;
}

#define REPORT "redflag 1 report\n"

static void whole_report(void **state)
{
    (void)state;
    struct rf_message message;
    char error[160];
    assert_true(read_text(&message,
                          REPORT "kind heap-use-after-free\ncertainty predicted\n"
                                 "module 0x1000 0x2000 0x1000 0 00ff /a file%0a with%25 more\n"
                                 "module 0x3000 0x4000 0x3000 1 - /lib\n"
                                 "access 0x1234 4 3 7 now\nheld 3 write\nheld 4 read\npc 0x1010\npc 0x1020\n"
                                 "access 0x1230 8 9 0 before\npc 0x1030\n"
                                 "location freed 0x1230 8 2 0 \npc 0x5\n"
                                 "lock 3 0x99\ncreated\npc 0x6\ntaken\npc 0x7\npc 0x8\n"
                                 "thread 7 0 4711 2 a name\npc 0x9\n"
                                 "step 3 4 7\nwanted\npc 0xa\nbefore\npc 0xb\n"
                                 "stack\npc 0xc\nmore 5\nsignal 14\nend\n",
                          error));
    const struct rf_record *record = &message.record;
    assert_int_equal(message.type, RF_MESSAGE_REPORT);
    assert_int_equal(record->kind, RF_K_FREE_RACE);
    assert_true(record->predicted);
    assert_int_equal(record->module_count, 2);
    assert_string_equal(record->modules[0].path, "/a file\n with% more");
    assert_string_equal(record->modules[0].build_id, "00ff");
    assert_string_equal(record->modules[1].build_id, "");
    assert_true(record->modules[1].runtime);
    assert_int_equal(record->access_count, 2);
    assert_int_equal(record->accesses[0].addr, 0x1234);
    assert_int_equal(record->accesses[0].flags, RF_RA_WRITE | RF_RA_ATOMIC);
    assert_int_equal(record->accesses[0].held_count, 2);
    assert_true(record->accesses[0].held[1].read);
    assert_int_equal(record->accesses[0].stack.count, 2);
    assert_int_equal(record->accesses[0].stack.pcs[1], 0x1020);
    assert_true(record->accesses[1].previous);
    assert_int_equal(record->location.kind, RF_AT_FREED);
    assert_int_equal(record->location.stack.count, 1);
    assert_int_equal(record->locks[0].created.count, 1);
    assert_int_equal(record->locks[0].taken.count, 2);
    assert_string_equal(record->threads[0].name, "a name");
    assert_int_equal(record->threads[0].tid, 4711);
    assert_int_equal(record->steps[0].wanted_at.pcs[0], 0xa);
    assert_int_equal(record->steps[0].held_at.pcs[0], 0xb);
    assert_int_equal(record->stacks[0].pcs[0], 0xc);
    assert_int_equal(record->more, 5);
    assert_int_equal(record->signal, 14);
    assert_ptr_equal(rf_record_thread(record, 7), &record->threads[0]);
    assert_null(rf_record_thread(record, 8));
    rf_message_free(&message);
}

static void hello_and_finish(void **state)
{
    (void)state;
    struct rf_message message;
    char error[160];
    assert_true(read_text(
        &message, "redflag 1 hello\npid 7\nresumed 1\noption format text\noption output \nsuppress race:a b\nend\n", error));
    assert_int_equal(message.type, RF_MESSAGE_HELLO);
    assert_int_equal(message.pid, 7);
    assert_true(message.resumed);
    assert_int_equal(message.pair_count, 3);
    assert_string_equal(message.pairs[0].value, "text");
    assert_string_equal(message.pairs[1].value, "");
    assert_string_equal(message.pairs[2].name, "suppress");
    assert_string_equal(message.pairs[2].value, "race:a b");
    rf_message_free(&message);
    assert_true(read_text(&message, "redflag 1 finish\ncount repeated 12\nend\n", error));
    assert_int_equal(message.type, RF_MESSAGE_FINISH);
    assert_string_equal(message.pairs[0].value, "12");
    rf_message_free(&message);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "", "no end" },
        { "redflag 1 report\n", "no end" },
        { "redflag 1 report\nend", "line 2 of a record: a line without an end" },
        { "redflag 2 report\nend\n", "line 1 of a record: another version of the runtime" },
        { "redflag 1 letter\nend\n", "line 1 of a record: an unknown type of message" },
        { "blueflag 1 report\nend\n", "line 1 of a record: not a message of redflag" },
        { "redflag 1 report more\nend\n", "line 1 of a record: a field too many" },
        { REPORT "end\nend\n", "line 2 of a record: something after the end" },
        { REPORT "color red\nend\n", "line 2 of a record: an unknown key" },
        { REPORT "pid 1\nend\n", "an unknown key" },
        { REPORT "kind surprise\nend\n", "an unknown kind" },
        { REPORT "pc 0x1\nend\n", "a pc that belongs to nothing" },
        { REPORT "access 0x1 4 1 0 now\npc 0xg\nend\n", "line 3 of a record: not a number" },
        { REPORT "access 0x1 4 1 0 now\npc\nend\n", "a field is missing" },
        { REPORT "access 0x1 4 1 0 now\npc 1 2\nend\n", "a field too many" },
        { REPORT "access 0x1 4 1 0 soon\nend\n", "neither of two words" },
        { REPORT "access 0x1 4 64 0 now\nend\n", "a number out of range" },
        { REPORT "access 0x1 4  0 now\nend\n", "an empty field" },
        { REPORT "access 0x10000000000000000 4 1 0 now\nend\n", "a number out of range" },
        { REPORT "held 1 read\nend\n", "a held lock before the first access" },
        { REPORT "created\nend\n", "an unknown key" },
        { REPORT "location mars 0x1 4 0 0 \nend\n", "an unknown kind of location" },
        { REPORT "location tls 0x1 4 0 0 \nlocation tls 0x1 4 0 0 \nend\n", "a second location" },
        { REPORT "module 0x2 0x1 0x0 0 - /x\nend\n", "a module that ends before it starts" },
        { REPORT "module 0x1 0x2 0x0 0 XY /x\nend\n", "a build id that is none" },
        { REPORT "module 0x1 0x2 0x0 0 - /x%zz\nend\n", "no two hexadecimal digits" },
        { REPORT "module 0x1 0x2 0x0 0 - /x%4\nend\n", "no two hexadecimal digits" },
        { REPORT "module 0x1 0x2 0x0 0 - /x%00\nend\n", "no two hexadecimal digits" },
        { REPORT "thread 1 0 99999999999 0 x\nend\n", "a number out of range" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rf_message message;
        char error[160] = "";
        if (read_text(&message, cases[i].text, error))
            fail_msg("read without complaint: %s", cases[i].text);
        if (!strstr(error, cases[i].error))
            fail_msg("'%s' does not say '%s'", error, cases[i].error);
    }
}

static void a_byte_0_is_refused(void **state)
{
    (void)state;
    struct rf_message message;
    char error[160], text[] = "redflag 1 report\nkind \0data-race\nend\n";
    assert_false(rf_message_read(&message, text, sizeof text - 1, error));
    assert_non_null(strstr(error, "a byte 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_report),
        cmocka_unit_test(hello_and_finish),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(a_byte_0_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
