/* Reports as SARIF 2.1.0. Both sides of a race are code flows, with one thread flow each, from the outermost call to the access; all other
 * stacks are in `stacks`. */
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "report/writers.h"

static void begin(FILE *out)
{
    struct rf_json json = { .out = out, .first = true, .line = true };
    fputs("{\"version\":\"2.1.0\",\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"runs\":[{", out);
    json.depth = 1;
    rf_json_open(&json, "tool", '{');
    rf_json_open(&json, "driver", '{');
    rf_json_string(&json, "name", "redflag");
    rf_json_string(&json, "version", RF_VERSION);
    rf_json_open(&json, "rules", '[');
    for (unsigned i = 0; i < RF_KINDS; i++) {
        rf_json_open(&json, NULL, '{');
        rf_json_string(&json, "id", rf_kinds[i].id);
        rf_json_open(&json, "shortDescription", '{');
        rf_json_string(&json, "text", rf_kinds[i].title);
        rf_json_close(&json, '}');
        rf_json_open(&json, "fullDescription", '{');
        rf_json_string(&json, "text", rf_kinds[i].text);
        rf_json_close(&json, '}');
        rf_json_open(&json, "defaultConfiguration", '{');
        rf_json_string(&json, "level", rf_kinds[i].rank);
        rf_json_close(&json, '}');
        rf_json_close(&json, '}');
    }
    rf_json_close(&json, ']');
    rf_json_close(&json, '}');
    rf_json_close(&json, '}');
    fputs(",\"results\":[", out);
}

/* A path as a URI: what is not plain is %XX. */
static void uri(struct rf_json *json, const char *path)
{
    size_t length = strlen(path);
    char *text = malloc(3 * length + 8), *to = text;
    if (!text)
        return;
    if (path[0] == '/')
        to = stpcpy(to, "file://");
    for (; *path; path++) {
        unsigned char c = (unsigned char)*path;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("/-._~+@=,", c))
            *to++ = (char)c;
        else
            to += sprintf(to, "%%%02X", c);
    }
    *to = 0;
    rf_json_string(json, "uri", text);
    free(text);
}

static void physical(struct rf_json *json, const struct rf_symbol *frame, const struct rf_writing *how)
{
    const char *file = frame->file ? rf_shown_path(how, frame->file) : frame->module;
    if (!file || !*file)
        return;
    rf_json_open(json, "physicalLocation", '{');
    rf_json_open(json, "artifactLocation", '{');
    uri(json, file);
    rf_json_close(json, '}');
    if (frame->file && frame->line) {
        rf_json_open(json, "region", '{');
        rf_json_number(json, "startLine", frame->line);
        if (frame->column)
            rf_json_number(json, "startColumn", frame->column);
        rf_json_close(json, '}');
    }
    rf_json_close(json, '}');
}

static void place(struct rf_json *json, const char *key, const struct rf_symbol *frame, const struct rf_writing *how,
                  const char *message)
{
    rf_json_open(json, key, '{');
    physical(json, frame, how);
    if (frame->function) {
        rf_json_open(json, "logicalLocations", '[');
        rf_json_open(json, NULL, '{');
        rf_json_string(json, "fullyQualifiedName", frame->function);
        rf_json_string(json, "kind", "function");
        rf_json_close(json, '}');
        rf_json_close(json, ']');
    }
    rf_json_open(json, "message", '{');
    rf_json_string(json, "text", message ? message : frame->function ? frame->function : "?");
    rf_json_close(json, '}');
    rf_json_close(json, '}');
}

static void flow(struct rf_json *json, const struct rf_stack *stack, const char *name, const struct rf_writing *how)
{
    if (!stack->frame_count)
        return;
    rf_json_open(json, NULL, '{');
    rf_json_open(json, "message", '{');
    rf_json_string(json, "text", name);
    rf_json_close(json, '}');
    rf_json_open(json, "threadFlows", '[');
    rf_json_open(json, NULL, '{');
    rf_json_open(json, "locations", '[');
    for (uint32_t i = stack->frame_count; i-- > 0;) {
        rf_json_open(json, NULL, '{');
        place(json, "location", &stack->frames[i], how, i ? NULL : name);
        rf_json_number(json, "nestingLevel", stack->frame_count - 1 - i);
        rf_json_string(json, "importance", i ? "important" : "essential");
        rf_json_close(json, '}');
    }
    rf_json_close(json, ']');
    rf_json_close(json, '}');
    rf_json_close(json, ']');
    rf_json_close(json, '}');
}

static void one_stack(struct rf_json *json, const struct rf_stack *stack, const char *name, const struct rf_writing *how)
{
    if (!stack->frame_count)
        return;
    rf_json_open(json, NULL, '{');
    rf_json_open(json, "message", '{');
    rf_json_string(json, "text", name);
    rf_json_close(json, '}');
    rf_json_open(json, "frames", '[');
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        rf_json_open(json, NULL, '{');
        place(json, "location", &stack->frames[i], how, NULL);
        if (stack->frames[i].module)
            rf_json_string(json, "module", stack->frames[i].module);
        rf_json_close(json, '}');
    }
    rf_json_close(json, ']');
    rf_json_close(json, '}');
}

static const char *access_name(const struct rf_record *record, const struct rf_rec_access *access, char text[128])
{
    const struct rf_rec_thread *thread = rf_record_thread(record, access->thread);
    char who[32] = "main thread";
    if (access->thread != 0 && !(thread && thread->flags & RF_RT_MAIN))
        snprintf(who, sizeof who, "thread T%u", access->thread);
    snprintf(text, 128, "%s of size %llu by %s", rf_access_words(access->flags, access->previous),
             (unsigned long long)access->size, who);
    return text;
}

static void message(struct rf_json *json, const struct rf_record *record, const struct rf_writing *how)
{
    char *text = NULL, buffer[128];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    rf_write_summary(out, record, how);
    for (uint32_t i = 0; i < record->access_count; i++) {
        const struct rf_rec_access *access = &record->accesses[i];
        fprintf(out, "%s %s", i ? ";" : ".", access_name(record, access, buffer));
        for (uint32_t j = 0; j < access->held_count; j++)
            fprintf(out, "%s%s M%u", j ? ", " : " (mutexes: ", access->held[j].read ? "read" : "write", access->held[j].lock);
        fputs(access->held_count ? ")" : "", out);
    }
    if (record->location.name)
        fprintf(out, "; of '%s'", record->location.name);
    fprintf(out, "%s%s.", record->predicted ? "; it " : "", record->predicted ? RF_PREDICTION : "");
    fclose(out);
    rf_json_open(json, "message", '{');
    rf_json_string(json, "text", text);
    rf_json_close(json, '}');
    free(text);
}

static void code_flows(struct rf_json *json, const struct rf_record *record, const struct rf_writing *how)
{
    char text[128];
    if (!record->access_count && !record->step_count && !record->stack_count)
        return;
    rf_json_open(json, "codeFlows", '[');
    for (uint32_t i = 0; i < record->access_count; i++)
        flow(json, &record->accesses[i].stack, access_name(record, &record->accesses[i], text), how);
    for (uint32_t i = 0; i < record->step_count; i++) {
        snprintf(text, sizeof text, "M%u acquired while holding M%u", record->steps[i].wanted, record->steps[i].held);
        flow(json, &record->steps[i].wanted_at, text, how);
    }
    for (uint32_t i = 0; i < record->stack_count; i++)
        flow(json, &record->stacks[i], i ? "and" : rf_kinds[record->kind].title, how);
    rf_json_close(json, ']');
}

static void other_stacks(struct rf_json *json, const struct rf_record *record, const struct rf_writing *how)
{
    char text[128];
    rf_json_open(json, "stacks", '[');
    one_stack(json, &record->location.stack, record->location.kind == RF_AT_FREED ? "freed at" : "location created at", how);
    for (uint32_t i = 0; i < record->lock_count; i++) {
        snprintf(text, sizeof text, "mutex M%u created at", record->locks[i].number);
        one_stack(json, &record->locks[i].created, text, how);
        snprintf(text, sizeof text, "mutex M%u acquired at", record->locks[i].number);
        one_stack(json, &record->locks[i].taken, text, how);
    }
    for (uint32_t i = 0; i < record->thread_count; i++) {
        snprintf(text, sizeof text, "thread T%u created at", record->threads[i].number);
        one_stack(json, &record->threads[i].stack, text, how);
    }
    rf_json_close(json, ']');
}

static void write_result(FILE *out, const struct rf_record *record, const struct rf_writing *how)
{
    struct rf_json json = { .out = out, .first = true, .line = true };
    char fingerprint[24];
    const struct rf_symbol *top = rf_stack_top(rf_record_main_stack(record));
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)rf_fingerprint(record));
    rf_json_open(&json, NULL, '{');
    rf_json_string(&json, "ruleId", rf_kinds[record->kind].id);
    rf_json_number(&json, "ruleIndex", record->kind);
    rf_json_string(&json, "level", rf_kinds[record->kind].rank);
    message(&json, record, how);
    rf_json_open(&json, "locations", '[');
    if (top)
        place(&json, NULL, top, how, NULL);
    rf_json_close(&json, ']');
    code_flows(&json, record, how);
    other_stacks(&json, record, how);
    rf_json_open(&json, "partialFingerprints", '{');
    rf_json_string(&json, "redflag/v1", fingerprint);
    rf_json_close(&json, '}');
    rf_json_open(&json, "properties", '{');
    rf_json_string(&json, "certainty", record->predicted ? "predicted" : "certain");
    if (record->predicted)
        rf_json_string(&json, "prediction", RF_PREDICTION);
    rf_json_number(&json, "pid", (uint64_t)how->pid);
    rf_json_close(&json, '}');
    rf_json_close(&json, '}');
}

const struct rf_document rf_sarif = {
    .name = "SARIF", .begin = begin, .between = ",", .end = "\n]}]}\n", .before_first = '[', .write = write_result
};
