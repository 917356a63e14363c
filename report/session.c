/* See report/session.h. */
#include "report/session.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/json.h"
#include "report/output.h"
#include "report/writers.h"

struct rf_session {
    bool begun;
    struct rf_writing how;
    struct rf_symbolizer *symbols;
    struct rf_suppressions suppressions;
    enum rf_format format;
    char path[PATH_MAX]; /* "": the stream */
    char *strip, *frame_format;
    bool print_suppressions, generate;
    enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color;
    uint64_t shown[RF_KINDS], suppressed;
    char *results; /* of a document (report/writers.h) for a stream: it is written whole, at the end */
    size_t results_length;
    int late; /* the stream for it, if the program ends without a word; -1: none */
};

struct rf_session *rf_session_new(void)
{
    struct rf_session *session = calloc(1, sizeof *session);
    if (!session) {
        fputs("redflag: out of memory for reports\n", stderr);
        exit(2);
    }
    session->print_suppressions = true;
    session->late = -1;
    return session;
}

static char *whole_document(const struct rf_session *session, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (!out)
        return NULL;
    const struct rf_document *document = rf_format_document(session->format);
    document->begin(out);
    fwrite(session->results, 1, session->results_length, out);
    fputs(document->end, out);
    fclose(out);
    return text;
}

void rf_session_free(struct rf_session *session)
{
    if (session->late >= 0) {
        size_t size;
        char *text = whole_document(session, &size);
        if (text)
            rf_output_write(session->late, text, size);
        free(text);
        close(session->late);
    }
    rf_symbolizer_free(session->symbols);
    rf_suppressions_free(&session->suppressions);
    free(session->strip);
    free(session->frame_format);
    free(session->results);
    free(session);
}

static bool truth(const char *value)
{
    return strcmp(value, "1") == 0 || strcmp(value, "true") == 0 || strcmp(value, "yes") == 0;
}

static char *copy(char **place, const char *value)
{
    free(*place);
    return *place = strdup(value);
}

/* The options that concern us; others are the runtime's. */
static bool take_option(struct rf_session *session, const char *name, const char *value, const char **log, char *error)
{
    if (strcmp(name, "format") == 0) {
        if (!rf_format_named(value, &session->format)) {
            snprintf(error, 512, "format '%s' is none of text, jsonl, sarif, junit", value);
            return false;
        }
    } else if (strcmp(name, "report_style") == 0) {
        session->how.tsan = strcmp(value, "tsan") == 0;
        if (!session->how.tsan && strcmp(value, "redflag") != 0) {
            snprintf(error, 512, "report_style '%s' is neither redflag nor tsan", value);
            return false;
        }
    } else if (strcmp(name, "color") == 0) {
        session->color = strcmp(value, "always") == 0  ? COLOR_ALWAYS
                         : strcmp(value, "never") == 0 ? COLOR_NEVER
                                                       : COLOR_AUTO;
    } else if (strcmp(name, "suppressions") == 0) {
        return !*value || rf_suppressions_load(&session->suppressions, value, error);
    } else if (strcmp(name, "output") == 0) {
        snprintf(session->path, sizeof session->path, "%s", value);
    } else if (strcmp(name, "log_path") == 0) {
        *log = value;
    } else if (strcmp(name, "print_suppressions") == 0) {
        session->print_suppressions = truth(value);
    } else if (strcmp(name, "gen_suppressions") == 0) {
        session->generate = truth(value);
    } else if (strcmp(name, "second_deadlock_stack") == 0) {
        session->how.second_stack = truth(value);
    } else if (strcmp(name, "strip_path_prefix") == 0) {
        session->how.strip_prefix = copy(&session->strip, value);
    } else if (strcmp(name, "stack_trace_format") == 0) {
        session->how.frame_format = copy(&session->frame_format, value);
    }
    return true;
}

/* The program's own suppressions are one text again, so that their lines are counted. */
static bool own_suppressions(struct rf_session *session, const struct rf_message *message, char *error)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bool any = false;
    for (uint32_t i = 0; out && i < message->pair_count; i++)
        if (strcmp(message->pairs[i].name, "suppress") == 0) {
            fprintf(out, "%s\n", message->pairs[i].value);
            any = true;
        }
    if (out)
        fclose(out);
    bool good = !any || rf_suppressions_parse(&session->suppressions, text, "__tsan_default_suppressions", error);
    free(text);
    return good;
}

static void begin(struct rf_session *session, const struct rf_message *message, char answer[RF_ANSWER])
{
    char error[512] = "";
    const char *log = "stderr";
    bool good = own_suppressions(session, message, error);
    for (uint32_t i = 0; good && i < message->pair_count; i++)
        if (strcmp(message->pairs[i].name, "suppress") != 0)
            good = take_option(session, message->pairs[i].name, message->pairs[i].value, &log, error);
    if (!good) {
        snprintf(answer, RF_ANSWER, "bad %s", error);
        return;
    }
    session->how.pid = message->pid;
    if (!session->path[0] && strcmp(log, "stderr") != 0 && strcmp(log, "stdout") != 0 && *log) {
        snprintf(session->path, sizeof session->path, "%.4000s.%d", log, message->pid);
        /* A number of a process comes again; what an earlier one has left there is not ours. */
        if (!message->resumed && !rf_output_prepare(session->path, session->format, error)) {
            snprintf(answer, RF_ANSWER, "bad %s", error);
            return;
        }
    }
    session->symbols = rf_symbolizer_new(message->pid);
    session->begun = session->symbols != NULL;
    strcpy(answer, session->begun ? "ready" : "bad out of memory");
}

static bool emit(struct rf_session *session, int stream, const char *text, size_t length, char error[512])
{
    if (session->path[0])
        return rf_output_append(session->path, session->format, text, length, error);
    const struct rf_document *document = rf_format_document(session->format);
    if (document) {
        size_t between = session->results_length ? strlen(document->between) : 0;
        char *grown = realloc(session->results, session->results_length + between + length + 1);
        if (!grown)
            return false;
        session->results = grown;
        memcpy(grown + session->results_length, document->between, between);
        session->results_length += between;
        grown[session->results_length++] = '\n';
        memcpy(grown + session->results_length, text, length);
        session->results_length += length;
        if (session->late < 0 && stream >= 0)
            session->late = dup(stream);
        return true;
    }
    /* A program that has closed its standard error does not want to read anything. */
    if (stream >= 0 && !rf_output_write(stream, text, length)) {
        snprintf(error, 512, "the report could not be written");
        return false;
    }
    return true;
}

static void write_generated(FILE *out, const struct rf_session *session, const struct rf_record *record)
{
    char buffer[1024];
    fprintf(out, "# %s, %016llx\n%s\n", rf_kinds[record->kind].title, (unsigned long long)rf_fingerprint(record),
            rf_suppression_for(record, session->how.tsan, buffer));
}

static void report(struct rf_session *session, struct rf_record *record, int stream, char answer[RF_ANSWER])
{
    char *text = NULL, error[512] = "";
    size_t size;
    rf_symbolizer_record(session->symbols, record);
    if (rf_suppressions_match(&session->suppressions, record)) {
        session->suppressed++;
        strcpy(answer, "suppressed");
        return;
    }
    session->how.color = session->color == COLOR_ALWAYS ||
                         (session->color == COLOR_AUTO && !session->path[0] && stream >= 0 && isatty(stream));
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        strcpy(answer, "failed out of memory");
        return;
    }
    const struct rf_document *document = rf_format_document(session->format);
    if (session->format == RF_FORMAT_JSONL)
        rf_write_jsonl(out, record, &session->how);
    else if (document)
        document->write(out, record, &session->how);
    else
        rf_write_text(out, record, &session->how);
    if (session->generate && session->format == RF_FORMAT_TEXT)
        write_generated(out, session, record);
    fclose(out);
    if (emit(session, stream, text, size, error)) {
        session->shown[record->kind]++;
        strcpy(answer, "shown ");
        FILE *line = fmemopen(answer + 6, RF_ANSWER - 6, "w"); /* what does not fit is cut off */
        if (line) {
            fprintf(line, "SUMMARY: %s: ", session->how.tsan ? "ThreadSanitizer" : "redflag");
            rf_write_summary(line, record, &session->how);
            fclose(line);
        }
        answer[RF_ANSWER - 1] = 0;
    } else {
        snprintf(answer, RF_ANSWER, "failed %s", error);
    }
    free(text);
}

static void summary_text(FILE *out, const struct rf_session *session, const struct rf_message *message, uint64_t shown)
{
    const char *us = session->how.tsan ? "ThreadSanitizer" : "redflag";
    if (shown)
        fprintf(out, "%s: reported %llu warning%s\n", us, (unsigned long long)shown,
                shown == 1 && !session->how.tsan ? "" : "s");
    for (uint32_t i = 0; !session->how.tsan && i < message->pair_count; i++)
        if (strcmp(message->pairs[i].value, "0") != 0)
            fprintf(out, "redflag: %s: %s\n", message->pairs[i].name, message->pairs[i].value);
    if (!session->print_suppressions)
        return;
    uint32_t matched = 0;
    for (uint32_t i = 0; i < session->suppressions.count; i++)
        matched += session->suppressions.list[i].hits != 0;
    if (matched) {
        fprintf(out, "%s: Matched %llu suppressions (pid=%d):\n", us, (unsigned long long)session->suppressed,
                session->how.pid);
        for (uint32_t i = 0; i < session->suppressions.count; i++) {
            const struct rf_suppression *one = &session->suppressions.list[i];
            if (one->hits)
                fprintf(out, "%llu %s:%s\n", (unsigned long long)one->hits, one->type, one->pattern);
        }
    }
    if (session->how.tsan || matched == session->suppressions.count)
        return;
    fprintf(out, "redflag: %u suppressions matched nothing:\n", session->suppressions.count - matched);
    for (uint32_t i = 0; i < session->suppressions.count; i++) {
        const struct rf_suppression *one = &session->suppressions.list[i];
        if (!one->hits)
            fprintf(out, "%s:%u: %s:%s\n", one->origin, one->line, one->type, one->pattern);
    }
}

static void summary_json(FILE *out, const struct rf_session *session, const struct rf_message *message, uint64_t shown)
{
    struct rf_json json = { .out = out, .first = true, .line = true };
    rf_json_open(&json, NULL, '{');
    rf_json_string(&json, "tool", "redflag");
    rf_json_number(&json, "version", 1);
    rf_json_string(&json, "kind", "summary");
    rf_json_number(&json, "pid", (uint64_t)session->how.pid);
    rf_json_number(&json, "reports", shown);
    rf_json_number(&json, "suppressed", session->suppressed);
    rf_json_open(&json, "counts", '{');
    for (uint32_t i = 0; i < message->pair_count; i++)
        rf_json_string(&json, message->pairs[i].name, message->pairs[i].value);
    rf_json_close(&json, '}');
    rf_json_open(&json, "suppressions", '[');
    for (uint32_t i = 0; i < session->suppressions.count; i++) {
        const struct rf_suppression *one = &session->suppressions.list[i];
        rf_json_open(&json, NULL, '{');
        rf_json_string(&json, "file", one->origin);
        rf_json_number(&json, "line", one->line);
        rf_json_string(&json, "type", one->type);
        rf_json_string(&json, "pattern", one->pattern);
        rf_json_number(&json, "hits", one->hits);
        rf_json_close(&json, '}');
    }
    rf_json_close(&json, ']');
    rf_json_close(&json, '}');
    fputc('\n', out);
}

static void finish(struct rf_session *session, const struct rf_message *message, int stream, char answer[RF_ANSWER])
{
    char *text = NULL, error[512] = "";
    size_t size;
    uint64_t shown = 0;
    for (unsigned i = 0; i < RF_KINDS; i++)
        shown += session->shown[i];
    strcpy(answer, "done");
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        strcpy(answer, "failed out of memory");
        return;
    }
    if (session->format == RF_FORMAT_TEXT) {
        summary_text(out, session, message, shown);
    } else if (session->format == RF_FORMAT_JSONL) {
        summary_json(out, session, message, shown);
    }
    fclose(out);
    bool good = true;
    if (rf_format_document(session->format) && !session->path[0]) {
        free(text);
        text = whole_document(session, &size);
        good = text && (stream < 0 || rf_output_write(stream, text, size));
        if (session->late >= 0)
            close(session->late);
        session->late = -1;
    } else if (size) {
        good = emit(session, stream, text, size, error);
    }
    if (!good)
        snprintf(answer, RF_ANSWER, "failed %s", error[0] ? error : "the summary could not be written");
    free(text);
}

void rf_session_message(struct rf_session *session, char *text, size_t length, int stream, char answer[RF_ANSWER])
{
    struct rf_message message;
    char error[160];
    if (!rf_message_read(&message, text, length, error)) {
        snprintf(answer, RF_ANSWER, "failed %s", error);
        return;
    }
    if (message.type == RF_MESSAGE_HELLO && !session->begun)
        begin(session, &message, answer);
    else if (message.type == RF_MESSAGE_HELLO || !session->begun)
        strcpy(answer, "failed a message at the wrong time");
    else if (message.type == RF_MESSAGE_REPORT)
        report(session, &message.record, stream, answer);
    else
        finish(session, &message, stream, answer);
    rf_message_free(&message);
}
