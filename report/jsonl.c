/* A report as one line of JSON. Fields are only ever added; doc/reports.md lists them. */
#include "report/json.h"
#include "report/writers.h"

static void address(struct rf_json *json, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)value);
    rf_json_string(json, key, text);
}

static void stack(struct rf_json *json, const char *key, const struct rf_stack *what, const struct rf_writing *how)
{
    if (!what->frame_count)
        return;
    rf_json_open(json, key, '[');
    for (uint32_t i = 0; i < what->frame_count; i++) {
        const struct rf_symbol *frame = &what->frames[i];
        rf_json_open(json, NULL, '{');
        if (frame->function)
            rf_json_string(json, "function", frame->function);
        if (frame->file)
            rf_json_string(json, "file", rf_shown_path(how, frame->file));
        if (frame->line)
            rf_json_number(json, "line", frame->line);
        if (frame->column)
            rf_json_number(json, "column", frame->column);
        if (frame->module) {
            rf_json_string(json, "module", frame->module);
            address(json, "offset", frame->offset);
        }
        if (frame->build_id && frame->build_id[0])
            rf_json_string(json, "build_id", frame->build_id);
        address(json, "pc", frame->pc);
        if (frame->inlined)
            rf_json_bool(json, "inlined", true);
        if (frame->runtime)
            rf_json_bool(json, "interceptor", true);
        rf_json_close(json, '}');
    }
    rf_json_close(json, ']');
}

static void accesses(struct rf_json *json, const struct rf_record *record, const struct rf_writing *how)
{
    if (!record->access_count)
        return;
    rf_json_open(json, "accesses", '[');
    for (uint32_t i = 0; i < record->access_count; i++) {
        const struct rf_rec_access *access = &record->accesses[i];
        rf_json_open(json, NULL, '{');
        rf_json_string(json, "op", access->flags & RF_RA_FREE ? "free" : access->flags & RF_RA_WRITE ? "write" : "read");
        if (access->flags & RF_RA_ATOMIC)
            rf_json_bool(json, "atomic", true);
        if (access->flags & RF_RA_VOLATILE)
            rf_json_bool(json, "volatile", true);
        rf_json_bool(json, "previous", access->previous);
        address(json, "address", access->addr);
        rf_json_number(json, "size", access->size);
        rf_json_number(json, "thread", access->thread);
        rf_json_open(json, "locks", '[');
        for (uint32_t j = 0; j < access->held_count; j++) {
            rf_json_open(json, NULL, '{');
            rf_json_number(json, "lock", access->held[j].lock);
            rf_json_string(json, "mode", access->held[j].read ? "read" : "write");
            rf_json_close(json, '}');
        }
        rf_json_close(json, ']');
        stack(json, "stack", &access->stack, how);
        rf_json_close(json, '}');
    }
    rf_json_close(json, ']');
}

static void location(struct rf_json *json, const struct rf_rec_location *at, const struct rf_writing *how)
{
    if (at->kind == RF_AT_NOWHERE)
        return;
    rf_json_open(json, "location", '{');
    rf_json_string(json, "kind", rf_location_names[at->kind]);
    if (at->kind == RF_AT_FD) {
        rf_json_number(json, "fd", (uint64_t)at->fd);
    } else {
        address(json, "address", at->addr);
        if (at->size)
            rf_json_number(json, "size", at->size);
    }
    if (at->text[0])
        rf_json_string(json, "type", at->text);
    if (at->kind == RF_AT_GLOBAL) {
        if (at->name)
            rf_json_string(json, "name", at->name);
        if (at->module) {
            rf_json_string(json, "module", at->module);
            address(json, "offset", at->offset);
        }
    } else {
        rf_json_number(json, "thread", at->thread);
    }
    stack(json, "stack", &at->stack, how);
    rf_json_close(json, '}');
}

static void locks_and_threads(struct rf_json *json, const struct rf_record *record, const struct rf_writing *how)
{
    rf_json_open(json, "locks", '[');
    for (uint32_t i = 0; i < record->lock_count; i++) {
        rf_json_open(json, NULL, '{');
        rf_json_number(json, "number", record->locks[i].number);
        address(json, "address", record->locks[i].addr);
        if (record->locks[i].name)
            rf_json_string(json, "name", record->locks[i].name);
        stack(json, "created", &record->locks[i].created, how);
        stack(json, "acquired", &record->locks[i].taken, how);
        rf_json_close(json, '}');
    }
    rf_json_close(json, ']');
    rf_json_open(json, "threads", '[');
    for (uint32_t i = 0; i < record->thread_count; i++) {
        const struct rf_rec_thread *thread = &record->threads[i];
        rf_json_open(json, NULL, '{');
        rf_json_number(json, "number", thread->number);
        rf_json_bool(json, "main", thread->flags & RF_RT_MAIN);
        rf_json_number(json, "tid", (uint64_t)thread->tid);
        if (thread->name[0])
            rf_json_string(json, "name", thread->name);
        rf_json_bool(json, "running", thread->flags & RF_RT_RUNNING);
        if (thread->flags & RF_RT_FIBER)
            rf_json_bool(json, "fiber", true);
        if (!(thread->flags & (RF_RT_MAIN | RF_RT_ORPHAN)))
            rf_json_number(json, "parent", thread->parent);
        stack(json, "created", &thread->stack, how);
        rf_json_close(json, '}');
    }
    rf_json_close(json, ']');
}

static void circle(struct rf_json *json, const struct rf_record *record, const struct rf_writing *how)
{
    if (!record->step_count)
        return;
    rf_json_open(json, "cycle", '[');
    for (uint32_t i = 0; i < record->step_count; i++) {
        rf_json_open(json, NULL, '{');
        rf_json_number(json, "held", record->steps[i].held);
        rf_json_number(json, "wanted", record->steps[i].wanted);
        rf_json_number(json, "thread", record->steps[i].thread);
        stack(json, "wanted_at", &record->steps[i].wanted_at, how);
        stack(json, "held_at", &record->steps[i].held_at, how);
        rf_json_close(json, '}');
    }
    rf_json_close(json, ']');
}

void rf_write_jsonl(FILE *out, const struct rf_record *record, const struct rf_writing *how)
{
    struct rf_json json = { .out = out, .first = true, .line = true };
    char fingerprint[24], suppression[1024];
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)rf_fingerprint(record));
    rf_json_open(&json, NULL, '{');
    rf_json_string(&json, "tool", "redflag");
    rf_json_number(&json, "version", 1);
    rf_json_string(&json, "kind", rf_kinds[record->kind].id);
    rf_json_string(&json, "title", rf_kinds[record->kind].title);
    rf_json_string(&json, "certainty", record->predicted ? "predicted" : "certain");
    if (record->predicted)
        rf_json_string(&json, "prediction", RF_PREDICTION);
    rf_json_number(&json, "pid", (uint64_t)how->pid);
    rf_json_string(&json, "fingerprint", fingerprint);
    rf_json_string(&json, "suppression", rf_suppression_for(record, how->tsan, suppression));
    accesses(&json, record, how);
    if (record->stack_count) {
        rf_json_open(&json, "stacks", '[');
        for (uint32_t i = 0; i < record->stack_count; i++)
            stack(&json, NULL, &record->stacks[i], how);
        rf_json_close(&json, ']');
    }
    circle(&json, record, how);
    location(&json, &record->location, how);
    locks_and_threads(&json, record, how);
    if (record->signal)
        rf_json_number(&json, "signal", (uint64_t)record->signal);
    if (record->more)
        rf_json_number(&json, "more", record->more);
    rf_json_close(&json, '}');
    fputc('\n', out);
}
