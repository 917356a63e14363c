/* lardvm [OPTION...] PROGRAM: runs a program of the tiny language of compile.c. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "vm.h"

struct program program;

void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("lardvm: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

void wrong(const struct thread *self, const char *format, ...)
{
    const struct frame *frame = &self->frames[self->depth - 1];
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "lardvm: %s:%u: ", program.file, frame->function->code[frame->pc - 1].line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

static const char help[] =
    "usage: lardvm [OPTION...] PROGRAM\n\n"
    "  --gc ms|ss       the collector: mark-sweep (default) or semispace\n"
    "  --heap BYTES     of the heap; semispace: of each half (default: 1048576)\n"
    "  --workers N      kernel threads for the green ones, 1 to 64 (default: 2)\n"
    "  --wander         a green thread never goes on under the kernel thread that ran it last; two workers at least\n"
    "  --clocks         locks keep clocks of their own, and are not told as locks\n"
    "  --language FILE  writes the execution as the language sees it, a trace of redflag's\n";

static unsigned long number_of(const char *text, unsigned long least, unsigned long most)
{
    char *end;
    unsigned long n = text ? strtoul(text, &end, 10) : 0;
    if (!text || *end || n < least || n > most)
        die("a number from %lu to %lu is needed, not '%s'", least, most, text ? text : "");
    return n;
}

int main(int argc, char **argv)
{
    enum collector collector = MARK_SWEEP;
    unsigned long heap = 1 << 20, workers = 2;
    const char *path = NULL;
    redflag_system_begin(); /* everything here is the machine's */
    for (int i = 1; i < argc; i++) {
        const char *value_of = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--help")) {
            fputs(help, stdout);
            return 0;
        }
        if (!strcmp(argv[i], "--gc") && value_of && (!strcmp(value_of, "ms") || !strcmp(value_of, "ss"))) {
            collector = *argv[++i] == 's' ? SEMISPACE : MARK_SWEEP;
        } else if (!strcmp(argv[i], "--heap")) {
            heap = number_of(argv[++i], 4096, 1ul << 32);
        } else if (!strcmp(argv[i], "--workers")) {
            workers = number_of(argv[++i], 1, 64);
        } else if (!strcmp(argv[i], "--wander")) {
            settings.wander = true;
        } else if (!strcmp(argv[i], "--clocks")) {
            settings.with_clocks = true;
        } else if (!strcmp(argv[i], "--language") && value_of) {
            settings.language = fopen(argv[++i], "w");
            if (!settings.language)
                die("%s: cannot be written", argv[i]);
        } else if (argv[i][0] == '-' || path) {
            die("what is '%s'? try --help", argv[i]);
        } else {
            path = argv[i];
        }
    }
    if (settings.wander && workers < 2)
        die("--wander needs two workers at least");
    if (!path)
        die("no program is named; try --help");
    compile(&program, path);
    heap_begin(collector, heap);
    run_program((unsigned)workers);
    if (settings.language && fclose(settings.language))
        die("the language's trace could not be written");
    fprintf(stderr, "lardvm: %u threads, %u collections\n", thread_count(), collections());
    redflag_system_end();
    return 0;
}
