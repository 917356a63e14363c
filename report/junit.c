/* Reports as JUnit's XML, which most systems for continuous integration show: every report is a test that failed. */
#include <stdlib.h>
#include <string.h>

#include "report/writers.h"

/* The suites have no counts: they are optional, and the document must be right after each report. One test always passes, since many
 * readers take a file without tests for a failure. */
static void begin(FILE *out)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"redflag\">\n<testsuite name=\"redflag\">\n"
          "<testcase classname=\"redflag\" name=\"run\"/>",
          out);
}

/* The number of bytes of a well-formed UTF-8 character that XML 1.0 allows; 0: none begins here. */
static size_t character(const unsigned char *at, size_t left)
{
    if (*at < 0x80)
        return *at >= 0x20 || *at == '\n' || *at == '\t';
    size_t size = *at >= 0xf0 && *at < 0xf5 ? 4 : *at >= 0xe0 && *at < 0xf0 ? 3 : *at >= 0xc2 && *at < 0xe0 ? 2 : 0;
    if (!size || size > left)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf0 && at[1] < 0x90) ||
        (at[0] == 0xf4 && at[1] >= 0x90) || (at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe))
        return 0;
    return size;
}

/* Names of functions, files and threads are any bytes: what XML cannot say is a question mark. */
static void escaped(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t size = character((const unsigned char *)text + i, length - i);
        switch (size ? text[i] : 0) {
        case 0:
            fputc('?', out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fwrite(text + i, 1, size, out);
        }
        i += size ? size : 1;
    }
}

static void through(FILE *out, const struct rf_record *record, const struct rf_writing *how,
                    void (*write)(FILE *, const struct rf_record *, const struct rf_writing *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *part = open_memstream(&text, &size);
    if (!part)
        return;
    write(part, record, how);
    fclose(part);
    escaped(out, text, size);
    free(text);
}

static void write_testcase(FILE *out, const struct rf_record *record, const struct rf_writing *how)
{
    const struct rf_symbol *top = rf_stack_top(rf_record_main_stack(record));
    const char *class = top && top->function ? top->function : "redflag";
    struct rf_writing plain = *how;
    plain.color = false;
    fputs("<testcase classname=\"", out);
    escaped(out, class, strlen(class));
    fputs("\" name=\"", out);
    through(out, record, &plain, rf_write_summary);
    fprintf(out, "\"><failure type=\"%s\" message=\"%016llx\">", rf_kinds[record->kind].id,
            (unsigned long long)rf_fingerprint(record));
    through(out, record, &plain, rf_write_text);
    fputs("</failure></testcase>", out);
}

/* begin() ends as a report does, which is no matter: nothing stands between two. */
const struct rf_document rf_junit = { .name = "JUnit",
                                      .begin = begin,
                                      .between = "",
                                      .end = "\n</testsuite>\n</testsuites>\n",
                                      .before_first = 0,
                                      .write = write_testcase };
