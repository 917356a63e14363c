/* Reports, in the form that Go's users know.
 *
 * 1. Symbols come from Go's runtime through the callback that it gave at the start: the address of a call's last byte, asked again as
 *    long as the answer is a function that was inlined into another. It can be called only from hooks of a goroutine, not of Go's
 *    scheduler; so races are reported from accesses, which are always a goroutine's.
 * 2. One report at a time (report_lock, held with no other); each pair of stacks once.
 */
#ifndef RF_GO_REPORT_H
#define RF_GO_REPORT_H

#include "go/goroutines.h"
#include "go/options.h"

struct report_side {
    uintptr_t addr;
    uint32_t note, goroutine, created;
    bool writes, ended;
};

struct code {
    uintptr_t pc;
    const char *function, *file;
    uintptr_t line, offset, found;
};

enum { SYMBOLIZE_CODE = 1 };

static void (*go_callback)(uintptr_t command, void *context);
static uint32_t report_lock;
static uint64_t report_count; /* written under the lock, read without */
static struct rf_map reported; /* pairs of notes, in report_memory */
static struct rf_memory report_memory;

static struct {
    char text[1 << 16];
    size_t used;
} out;

static int report_fd(void)
{
    static int fd = -1;
    if (fd >= 0)
        return fd;
    if (!strcmp(options.log_path, "stdout"))
        return fd = 1;
    if (!strcmp(options.log_path, "stderr"))
        return fd = 2;
    char path[sizeof options.log_path + 24];
    size_t size = strlen(options.log_path);
    unsigned long pid = (unsigned long)call_kernel(SYS_getpid, 0, 0, 0, 0, 0, 0);
    char digits[24];
    unsigned count = 0;
    do
        digits[count++] = (char)('0' + pid % 10);
    while (pid /= 10);
    memcpy(path, options.log_path, size);
    path[size++] = '.';
    while (count)
        path[size++] = digits[--count];
    path[size] = 0;
    long opened = call_kernel(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0660, 0, 0);
    if (opened < 0)
        give_up("GORACE: the file of log_path cannot be written");
    return fd = (int)opened;
}

static void out_flush(void)
{
    write_all(report_fd(), out.text, out.used);
    out.used = 0;
}

static void out_bytes(const char *text, size_t size)
{
    for (size_t part; size; text += part, size -= part) {
        part = sizeof out.text - out.used < size ? sizeof out.text - out.used : size;
        memcpy(out.text + out.used, text, part);
        out.used += part;
        if (out.used == sizeof out.text)
            out_flush();
    }
}

static void out_text(const char *text)
{
    out_bytes(text, strlen(text));
}

static void out_number(uint64_t number, unsigned base, unsigned least)
{
    char digits[72];
    unsigned count = 0;
    do
        digits[sizeof digits - ++count] = "0123456789abcdef"[number % base];
    while ((number /= base) || count < least);
    out_bytes(digits + sizeof digits - count, count);
}

static const char *without_prefix(const char *file)
{
    const char *prefix = options.strip_path_prefix, *at = *prefix ? strstr(file, prefix) : NULL;
    if (!at)
        return file;
    at += strlen(prefix);
    return at[0] == '.' && at[1] == '/' ? at + 2 : at;
}

static void out_frame(const struct code *code)
{
    out_text("  ");
    out_text(code->function);
    out_text("()\n      ");
    out_text(without_prefix(code->file));
    out_text(":");
    out_number(code->line, 10, 1);
    out_text(" +0x");
    out_number(code->offset, 16, 1);
    out_text("\n");
}

/* All functions at one return address, innermost first. */
static void out_frames_at(uintptr_t pc)
{
    struct code code = { .pc = pc - 1 };
    for (unsigned inlined = 0; inlined < 64; inlined++) {
        uintptr_t asked = code.pc;
        code.found = 0;
        go_callback(SYMBOLIZE_CODE, &code);
        if (!code.found)
            return;
        out_frame(&code);
        if (code.pc == asked)
            return;
    }
}

/* The outermost frame is Go's runtime, which calls main and every goroutine: nobody wants to see it. */
static void out_stack(uint32_t note)
{
    if (!note)
        out_text("  [no stack]\n");
    for (bool first = true; note; note = note_at(note)->below, first = false)
        if (first || note_at(note)->below)
            out_frames_at(note_at(note)->pc);
}

static void out_goroutine(uint32_t number)
{
    if (number <= MAIN_GOROUTINE) {
        out_text("main goroutine");
        return;
    }
    out_text("goroutine ");
    out_number(number, 10, 1);
}

static void out_side(const struct report_side *side, bool first)
{
    out_text(first ? (side->writes ? "Write at 0x" : "Read at 0x") : (side->writes ? "\nPrevious write at 0x" : "\nPrevious read at 0x"));
    out_number(side->addr, 16, 12);
    out_text(" by ");
    out_goroutine(side->goroutine);
    out_text(":\n");
    out_stack(side->note);
}

static void out_created(const struct report_side *side)
{
    if (side->goroutine <= MAIN_GOROUTINE)
        return;
    out_text("\nGoroutine ");
    out_number(side->goroutine, 10, 1);
    out_text(side->ended ? " (finished)" : " (running)");
    out_text(" created at:\n");
    out_stack(side->created);
}

/* Is this pair of stacks new? */
static bool report_is_new(uint32_t a, uint32_t b)
{
    uint64_t key = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    if (!report_memory.pieces) {
        report_memory.pieces = pool_pieces;
        report_memory.give_back = pool_give_back;
        rf_map_init(&reported, &report_memory);
    }
    uint64_t *place = rf_map_at(&reported, key);
    bool is_new = !*place;
    *place = 1;
    return is_new;
}

static void report_race(const struct report_side *now, const struct report_side *before)
{
    spin_lock(&report_lock);
    if (report_is_new(now->note, before->note) || !options.suppress_equal_stacks) {
        out_text("==================\nWARNING: DATA RACE\n");
        out_side(now, true);
        out_side(before, false);
        out_created(now);
        if (before->goroutine != now->goroutine)
            out_created(before);
        out_text("==================\n");
        out_flush();
        __atomic_store_n(&report_count, report_count + 1, __ATOMIC_RELAXED);
        if (options.halt_on_error)
            call_kernel(SYS_exit_group, options.exitcode, 0, 0, 0, 0, 0);
    }
    spin_unlock(&report_lock);
}

/* The exit status of the program. */
static int report_end(void)
{
    if (options.atexit_sleep_ms > 0 && goroutines_live > 1) {
        long wait[2] = { options.atexit_sleep_ms / 1000, options.atexit_sleep_ms % 1000 * 1000000 };
        call_kernel(SYS_nanosleep, (long)wait, (long)wait, 0, 0, 0, 0);
    }
    spin_lock(&report_lock);
    int status = 0;
    if (report_count) {
        out_text("Found ");
        out_number(report_count, 10, 1);
        out_text(" data race(s)\n");
        out_flush();
        status = (int)options.exitcode;
    }
    spin_unlock(&report_lock);
    return status;
}

#endif
