/* A report as a person reads it, in two styles: ours, and ThreadSanitizer's line by line. The two differ in few words, so they are one
 * text: ours says who we are, the locks' last acquisition, build ids and the fingerprint besides. */
#include <string.h>

#include "report/writers.h"

static const char *red(const struct rf_writing *how)
{
    return how->color ? "\033[1m\033[31m" : "";
}

static const char *blue(const struct rf_writing *how)
{
    return how->color ? "\033[1m\033[34m" : "";
}

static const char *green(const struct rf_writing *how)
{
    return how->color ? "\033[1m\033[32m" : "";
}

static const char *plain(const struct rf_writing *how)
{
    return how->color ? "\033[1m\033[0m" : "";
}

static const char *our_name(const struct rf_writing *how)
{
    return how->tsan ? "ThreadSanitizer" : "redflag";
}

const char *rf_access_words(uint32_t flags, bool previous)
{
    static const char *const words[2][4] = { { "Read", "Write", "Atomic read", "Atomic write" },
                                             { "Previous read", "Previous write", "Previous atomic read",
                                               "Previous atomic write" } };
    return words[previous][((flags & RF_RA_ATOMIC) != 0) * 2 + ((flags & RF_RA_WRITE) != 0)];
}

const char *rf_shown_path(const struct rf_writing *how, const char *path)
{
    size_t length = how->strip_prefix ? strlen(how->strip_prefix) : 0;
    if (!path || !length)
        return path;
    const char *found = strstr(path, how->strip_prefix);
    if (!found)
        return path;
    path = found + length;
    return path[0] == '.' && path[1] == '/' ? path + 2 : path;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *thread_name(uint32_t number, const struct rf_record *record, char buffer[32])
{
    const struct rf_rec_thread *thread = rf_record_thread(record, number);
    if (number == 0 || (thread && thread->flags & RF_RT_MAIN))
        return "main thread";
    snprintf(buffer, 32, "thread T%u", number);
    return buffer;
}

static void source(FILE *out, const struct rf_symbol *frame, const struct rf_writing *how)
{
    fputs(rf_shown_path(how, frame->file), out);
    if (frame->line) {
        fprintf(out, ":%u", frame->line);
        if (frame->column)
            fprintf(out, ":%u", frame->column);
    }
}

static void module(FILE *out, const struct rf_symbol *frame, const char *name)
{
    fprintf(out, "(%s+0x%llx)", name, (unsigned long long)frame->offset);
}

/* One of ThreadSanitizer's letters after a %. */
static void formatted(FILE *out, char letter, const struct rf_symbol *frame, unsigned number, const struct rf_writing *how)
{
    switch (letter) {
    case '%':
        fputc('%', out);
        break;
    case 'n':
        fprintf(out, "%u", number);
        break;
    case 'p':
        fprintf(out, "0x%012llx", (unsigned long long)frame->pc);
        break;
    case 'm':
        fputs(frame->module ? rf_shown_path(how, frame->module) : "<null>", out);
        break;
    case 'o':
        fprintf(out, "0x%llx", (unsigned long long)frame->offset);
        break;
    case 'b':
        if (frame->build_id && frame->build_id[0])
            fprintf(out, "(BuildId: %s)", frame->build_id);
        break;
    case 'f':
        fputs(frame->function ? frame->function : "<null>", out);
        break;
    case 's':
        fputs(frame->file ? rf_shown_path(how, frame->file) : "<null>", out);
        break;
    case 'l':
        fprintf(out, "%u", frame->line);
        break;
    case 'c':
        fprintf(out, "%u", frame->column);
        break;
    case 'F':
        if (frame->function)
            fprintf(out, "in %s", frame->function);
        break;
    case 'S':
        if (frame->file)
            source(out, frame, how);
        else
            fputs("<null>", out);
        break;
    case 'L':
        if (frame->file)
            source(out, frame, how);
        else if (frame->module)
            module(out, frame, base_name(frame->module));
        else
            fprintf(out, "(0x%012llx)", (unsigned long long)frame->pc);
        break;
    case 'M':
        if (frame->module) {
            module(out, frame, base_name(frame->module));
            if (how->tsan && (number == 0 || !frame[-1].inlined) && frame->build_id && frame->build_id[0])
                fprintf(out, " (BuildId: %s)", frame->build_id);
        } else {
            fprintf(out, "(0x%012llx)", (unsigned long long)frame->pc);
        }
        break;
    default:
        fprintf(out, "%%%c", letter);
    }
}

static void stack(FILE *out, const struct rf_stack *what, const struct rf_writing *how)
{
    const char *format = how->frame_format && *how->frame_format && strcmp(how->frame_format, "DEFAULT") != 0
                             ? how->frame_format
                             : "    #%n %f %S %M";
    for (uint32_t i = 0; i < what->frame_count; i++) {
        for (const char *p = format; *p; p++) {
            if (*p == '%' && p[1])
                formatted(out, *++p, &what->frames[i], i, how);
            else
                fputc(*p, out);
        }
        fputc('\n', out);
    }
    if (!what->frame_count)
        fputs("    [no frame of this stack is in instrumented code]\n", out);
    fputc('\n', out);
}

static void access(FILE *out, const struct rf_record *record, const struct rf_rec_access *one, const struct rf_writing *how)
{
    char buffer[32];
    fprintf(out, "%s  %s of size %llu at 0x%012llx by %s", blue(how), rf_access_words(one->flags, one->previous),
            (unsigned long long)one->size, (unsigned long long)one->addr, thread_name(one->thread, record, buffer));
    const struct rf_rec_thread *thread = rf_record_thread(record, one->thread);
    if (!how->tsan && thread && thread->name[0] && !(thread->flags & RF_RT_MAIN))
        fprintf(out, " '%s'", thread->name);
    for (uint32_t i = 0; i < one->held_count; i++)
        fprintf(out, "%s%s M%u", i ? ", " : " (mutexes: ", one->held[i].read ? "read" : "write", one->held[i].lock);
    fprintf(out, "%s:%s\n", one->held_count ? ")" : "", plain(how));
    stack(out, &one->stack, how);
}

static void location(FILE *out, const struct rf_record *record, const struct rf_writing *how)
{
    const struct rf_rec_location *at = &record->location;
    char buffer[32];
    unsigned long long addr = at->addr, size = at->size, offset = at->offset;
    const char *who = thread_name(at->thread, record, buffer);
    /* ThreadSanitizer does not describe a block that is free. */
    if (at->kind == RF_AT_NOWHERE || (how->tsan && at->kind == RF_AT_FREED))
        return;
    fprintf(out, "%s  ", green(how));
    switch (at->kind) {
    case RF_AT_GLOBAL:
        if (at->name && size)
            fprintf(out, "Location is global '%s' of size %llu at 0x%012llx (%s+0x%llx)%s\n\n", at->name, size, addr,
                    base_name(at->module), offset, plain(how));
        else if (at->name)
            fprintf(out, "Location is global '%s' at 0x%012llx (%s+0x%llx)%s\n\n", at->name, addr, base_name(at->module),
                    offset, plain(how));
        else
            fprintf(out, "Location is global '<null>' at 0x%012llx (%s+0x%llx)%s\n\n", addr,
                    at->module ? base_name(at->module) : "<null>", offset, plain(how));
        break;
    case RF_AT_HEAP:
    case RF_AT_FREED:
        if (at->text[0])
            fprintf(out, "Location is %s of size %llu at 0x%012llx %s by %s:%s\n", at->text, size, addr,
                    at->kind == RF_AT_FREED ? "freed" : "allocated", who, plain(how));
        else
            fprintf(out, "Location is heap block of size %llu at 0x%012llx %s by %s:%s\n", size, addr,
                    at->kind == RF_AT_FREED ? "freed" : "allocated", who, plain(how));
        stack(out, &at->stack, how);
        break;
    case RF_AT_STACK:
        fprintf(out, "Location is stack of %s.%s\n\n", who, plain(how));
        break;
    case RF_AT_TLS:
        fprintf(out, "Location is TLS of %s.%s\n\n", who, plain(how));
        break;
    case RF_AT_FD:
        fprintf(out, "Location is file descriptor %d created by %s at:%s\n", at->fd, who, plain(how));
        stack(out, &at->stack, how);
        break;
    default:
        break;
    }
}

static void locks(FILE *out, const struct rf_record *record, const struct rf_writing *how)
{
    for (uint32_t i = 0; i < record->lock_count; i++) {
        const struct rf_rec_lock *lock = &record->locks[i];
        /* A lock that was never initialised is known from when it was first taken. */
        const struct rf_stack *created = lock->created.count ? &lock->created : &lock->taken;
        if (record->kind == RF_K_LOCK_ORDER)
            continue;
        fprintf(out, "%s  Mutex M%u", green(how), lock->number);
        if (!how->tsan && lock->name)
            fprintf(out, " '%s'", lock->name);
        fprintf(out, " (0x%012llx)", (unsigned long long)lock->addr);
        if (!created->count) {
            fprintf(out, "%s\n\n", plain(how));
            continue;
        }
        fprintf(out, " %s at:%s\n", lock->created.count || how->tsan ? "created" : "acquired", plain(how));
        stack(out, created, how);
        if (!how->tsan && lock->created.count && lock->taken.count) {
            fprintf(out, "%s  Mutex M%u acquired at:%s\n", green(how), lock->number, plain(how));
            stack(out, &lock->taken, how);
        }
    }
}

static void circle(FILE *out, const struct rf_record *record, const struct rf_writing *how)
{
    char buffer[32];
    if (!record->step_count)
        return;
    fputs("  Cycle in lock order graph: ", out);
    for (uint32_t i = 0; i < record->step_count; i++) {
        uint64_t addr = 0;
        for (uint32_t j = 0; j < record->lock_count; j++)
            if (record->locks[j].number == record->steps[i].held)
                addr = record->locks[j].addr;
        fprintf(out, "M%u (0x%012llx) => ", record->steps[i].held, (unsigned long long)addr);
    }
    fprintf(out, "M%u\n\n", record->steps[0].held);
    for (uint32_t i = 0; i < record->step_count; i++) {
        const struct rf_rec_step *step = &record->steps[i];
        fprintf(out, "%s  Mutex M%u acquired here while holding mutex M%u in %s:%s\n", green(how), step->wanted, step->held,
                thread_name(step->thread, record, buffer), plain(how));
        stack(out, &step->wanted_at, how);
        if (how->second_stack && step->held_at.count) {
            fprintf(out, "%s  Mutex M%u previously acquired by the same thread here:%s\n", green(how), step->held,
                    plain(how));
            stack(out, &step->held_at, how);
        } else if (i == 0 && !how->second_stack) {
            fprintf(out, "    Hint: use %s=second_deadlock_stack=1 to get more informative warning message\n\n",
                    how->tsan ? "TSAN_OPTIONS" : "REDFLAG_OPTIONS");
        }
    }
}

static void threads(FILE *out, const struct rf_record *record, const struct rf_writing *how)
{
    char buffer[32];
    for (uint32_t i = 0; i < record->thread_count; i++) {
        const struct rf_rec_thread *thread = &record->threads[i];
        if (thread->flags & RF_RT_MAIN)
            continue;
        fprintf(out, "%s  Thread T%u", blue(how), thread->number);
        if (thread->name[0])
            fprintf(out, " '%s'", thread->name);
        bool orphan = thread->flags & RF_RT_ORPHAN;
        fprintf(out, " (tid=%d, %s)%s%s%s%s\n", thread->tid,
                thread->flags & RF_RT_FIBER     ? "fiber"
                : thread->flags & RF_RT_RUNNING ? "running"
                                                : "finished",
                orphan ? "" : " created by ", orphan ? "" : thread_name(thread->parent, record, buffer),
                thread->stack.count ? " at:" : "", plain(how));
        if (thread->stack.count)
            stack(out, &thread->stack, how);
        else
            fputc('\n', out);
    }
}

static void add_module(const struct rf_stack *what, const struct rf_symbol **seen, unsigned *count, unsigned most)
{
    for (uint32_t i = 0; i < what->frame_count && *count < most; i++) {
        const struct rf_symbol *frame = &what->frames[i];
        unsigned known = 0;
        while (known < *count && strcmp(seen[known]->module, frame->module ? frame->module : "") != 0)
            known++;
        if (known == *count && frame->module && !frame->runtime && frame->build_id && frame->build_id[0])
            seen[(*count)++] = frame;
    }
}

/* Which builds the report is about: once each, not in every frame. */
static void modules(FILE *out, const struct rf_record *record)
{
    const struct rf_symbol *seen[8];
    unsigned count = 0;
    for (uint32_t i = 0; i < record->access_count; i++)
        add_module(&record->accesses[i].stack, seen, &count, 8);
    for (uint32_t i = 0; i < record->stack_count; i++)
        add_module(&record->stacks[i], seen, &count, 8);
    for (uint32_t i = 0; i < record->step_count; i++)
        add_module(&record->steps[i].wanted_at, seen, &count, 8);
    for (unsigned i = 0; i < count; i++)
        fprintf(out, "  Build id of %s: %s\n", base_name(seen[i]->module), seen[i]->build_id);
}

void rf_write_summary(FILE *out, const struct rf_record *record, const struct rf_writing *how)
{
    const struct rf_symbol *top = rf_stack_top(rf_record_main_stack(record));
    fputs(rf_kinds[record->kind].title, out);
    if (!top)
        return;
    fputc(' ', out);
    if (top->file)
        source(out, top, how);
    else if (top->module)
        module(out, top, top->module);
    if (top->function)
        fprintf(out, " in %s", top->function);
}

void rf_write_text(FILE *out, const struct rf_record *record, const struct rf_writing *how)
{
    fputs("==================\n", out);
    fprintf(out, "%sWARNING: %s: %s%s (pid=%d)%s\n", red(how), our_name(how),
            record->predicted && !how->tsan ? "predicted " : "", rf_kinds[record->kind].title, how->pid, plain(how));
    if (record->predicted && !how->tsan)
        fprintf(out, "  Not known to have happened in this execution; it %s.\n", RF_PREDICTION);
    circle(out, record, how);
    for (uint32_t i = 0; i < record->stack_count; i++) {
        if (i)
            fputs("  and:\n", out);
        stack(out, &record->stacks[i], how);
    }
    for (uint32_t i = 0; i < record->access_count; i++)
        access(out, record, &record->accesses[i], how);
    location(out, record, how);
    locks(out, record, how);
    threads(out, record, how);
    if (record->more)
        fprintf(out, "  And %u more similar thread leak%s.\n\n", record->more, record->more > 1 ? "s" : "");
    if (!how->tsan) {
        modules(out, record);
        fprintf(out, "  Fingerprint: %016llx\n\n", (unsigned long long)rf_fingerprint(record));
    }
    fprintf(out, "SUMMARY: %s: ", our_name(how));
    rf_write_summary(out, record, how);
    fputs("\n==================\n", out);
}

const char *rf_suppression_for(const struct rf_record *record, bool tsan, char buffer[1024])
{
    const struct rf_stack *main_stack = rf_record_main_stack(record);
    const char *names[2] = { NULL, NULL };
    unsigned count = 0;
    for (uint32_t i = 0; i < main_stack->frame_count && count < (tsan ? 1 : 2); i++)
        if (!main_stack->frames[i].runtime && main_stack->frames[i].function)
            names[count++] = main_stack->frames[i].function;
    const char *type = rf_kinds[record->kind].suppressed_by;
    const struct rf_symbol *top = rf_stack_top(main_stack);
    if (count == 2)
        snprintf(buffer, 1024, "%s:^%.400s$;^%.400s$", type, names[0], names[1]);
    else if (count == 1)
        snprintf(buffer, 1024, "%s:^%.400s$", type, names[0]);
    else
        snprintf(buffer, 1024, "%s:%.800s", type, top && top->module ? top->module : "*");
    return buffer;
}
