/* guarantees_judge TRACE ADDRESS SIZE DETECTOR REPORTS: does what a detector has reported in a run hold what doc/detectors.md says of it? The
 * judge is the oracle (tests/oracle.h), on the recording of the same execution.
 *
 * 1. ADDRESS is where the memory lies that counts, in the trace. REPORTS has a line for each report: OFFSET SIZE certain|predicted.
 * 2. A recording leaves open in which order accesses came that nothing orders. So what is asked is which bytes are reported, not at
 *    which access: that depends on the order for no promise below.
 * 3. A report names the bytes of an access, of which some may not race: a byte must be in a report, and a report must have a byte.
 *
 * Prints what does not hold, and nothing if all does; with DETECTOR `show`, how many bytes race by which definition.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/definitions.h"
#include "trace/trace.h"

static struct rf_event events[ORACLE_NODES];
static size_t event_count;
static struct oracle shared, accu;
static uint64_t address, size;

/* By the byte of the memory. */
enum { RACES, EMPTY_RACES, UNPROTECTED, ANSWERS };
static bool answers[ANSWERS][ORACLE_BYTES];

static void die(const char *what)
{
    printf("guarantees_judge: %s\n", what);
    exit(2);
}

static void keep(const struct rf_event *event)
{
    enum rf_op_kind kind = rf_op_kind((enum rf_op)event->op);
    bool here = event->addr >= address && event->addr < address + size;
    if ((kind == RF_ACCESS || kind == RF_MEMORY) && !here)
        return;
    if (event_count == ORACLE_NODES)
        die("the trace is too long");
    events[event_count++] = *event;
}

static void read_trace(const char *path)
{
    char *error = NULL;
    struct rf_reader *reader = rf_reader_open(path, RF_FORMAT_AUTO, &error);
    if (!reader)
        die(error);
    struct rf_batch batch;
    enum rf_trace_status status;
    while ((status = rf_reader_next(reader, &batch)) == RF_TRACE_MORE)
        for (size_t i = 0; i < batch.count; i++)
            keep(&batch.events[i]);
    if (status != RF_TRACE_END)
        die(rf_reader_error(reader));
    rf_reader_close(reader);
}

static void ask_oracles(void)
{
    oracle_run(&shared, events, event_count, ORACLE_SHARED);
    oracle_run(&accu, events, event_count, ORACLE_ACCU);
    for (uint32_t at = 0; at < size; at++) {
        uint32_t byte = oracle_byte(&shared, address + at);
        if (byte == UINT32_MAX)
            continue;
        answers[RACES][at] = shared.first[byte] != ORACLE_NEVER;
        answers[EMPTY_RACES][at] = accu.first[byte] != ORACLE_NEVER;
    }
    for (uint32_t i = 0; i < accu.access_count; i++)
        if (lockset_says(&accu, &accu.accesses[i]))
            answers[UNPROTECTED][oracle_addr(&accu, accu.accesses[i].byte) - address] = true;
}

/* What each says, in terms of bytes: every byte of `all` is reported; every report has a byte of `only`; a certain one has one of
 * `certain`. ANSWERS: nothing is promised. */
static const struct promise {
    const char *detector;
    int all, only, certain;
} promises[] = {
    { "fasttrack", RACES, RACES, RACES },
    { "generic", RACES, RACES, RACES },
    { "djit", RACES, RACES, RACES },
    { "goldilocks", RACES, RACES, RACES },
    { "pacer", RACES, RACES, RACES }, /* at 100% */
    { "pacer-half", ANSWERS, RACES, RACES },
    { "literace", ANSWERS, RACES, RACES },
    { "acculock", RACES, UNPROTECTED, RACES },
    { "multilock", EMPTY_RACES, EMPTY_RACES, RACES },
    { "lockset", UNPROTECTED, UNPROTECTED, RACES },
    { "eraser", ANSWERS, UNPROTECTED, RACES },
    { "racetrack", ANSWERS, UNPROTECTED, RACES },
    { "hybrid", ANSWERS, EMPTY_RACES, RACES },
    { "multirace", ANSWERS, RACES, RACES },
    { "none", ANSWERS, ANSWERS, ANSWERS },
};

static bool meets(int answer, unsigned from, unsigned length)
{
    for (unsigned at = from; answer != ANSWERS && at < from + length && at < size; at++)
        if (answers[answer][at])
            return true;
    return false;
}

static void judge(const struct promise *promise, FILE *reports)
{
    static bool reported[ORACLE_BYTES];
    unsigned from, length;
    char certainty[16];
    while (fscanf(reports, "%u %u %15s", &from, &length, certainty) == 3) {
        for (unsigned at = from; at < from + length && at < size; at++)
            reported[at] = true;
        if (!meets(promise->only, from, length))
            printf("%u bytes at %u are reported, and no race\n", length, from);
        if (!strcmp(certainty, "certain") && !meets(promise->certain, from, length))
            printf("%u bytes at %u are reported as certain, and no race of this execution\n", length, from);
    }
    for (unsigned at = 0; promise->all != ANSWERS && at < size; at++)
        if (answers[promise->all][at] && !reported[at])
            printf("the byte at %u is not reported\n", at);
}

static unsigned count(int answer)
{
    unsigned sum = 0;
    for (unsigned at = 0; at < size; at++)
        sum += answers[answer][at];
    return sum;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        die("too few arguments");
    address = strtoull(argv[2], NULL, 16);
    size = strtoull(argv[3], NULL, 10);
    if (size > ORACLE_BYTES || address % RF_GRANULE)
        die("that memory is not the program's");
    read_trace(argv[1]);
    ask_oracles();
    if (!strcmp(argv[4], "show")) {
        printf("%zu events; of %u bytes %u race, %u by ∅-races, %u are unprotected\n", event_count, (unsigned)size, count(RACES),
               count(EMPTY_RACES), count(UNPROTECTED));
        return 0;
    }
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++) {
        if (strcmp(promises[i].detector, argv[4]))
            continue;
        FILE *reports = argc > 5 ? fopen(argv[5], "r") : NULL;
        if (!reports)
            die("there are no reports");
        judge(&promises[i], reports);
        fclose(reports);
        return 0;
    }
    die("nothing is promised of that detector");
}
