/* What a program is, by its ELF file: does it report its accesses, and to whom? */
#ifndef RF_CLI_PROGRAM_H
#define RF_CLI_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

#include "cli/places.h"

enum rf_program_kind {
    RF_PROGRAM_UNREADABLE, /* errno says why */
    RF_PROGRAM_SCRIPT,     /* begins with #! */
    RF_PROGRAM_FOREIGN,    /* no ELF file for x86-64 */
    RF_PROGRAM_ELF
};

struct rf_program {
    enum rf_program_kind kind;
    bool hooks;            /* it calls __tsan_...: instrumented */
    bool own_runtime;      /* it defines __tsan_init: a runtime is linked into it */
    bool needs_ours;       /* it asks the loader for libredflag-rt.so.0 */
    bool dynamic;          /* it has a loader at all */
    bool privileged;       /* set-user-ID, set-group-ID or file capabilities: the loader ignores LD_LIBRARY_PATH */
    char needs_tsan[64];   /* it asks for this one of gcc's runtimes, "" for none */
    char rpath[PATH_MAX];  /* DT_RPATH, where the loader looks before LD_LIBRARY_PATH; "" if there is none or DT_RUNPATH too */
};

void rf_program_read(struct rf_program *program, const char *path);
/* The path that execvp would run, false if there is none. */
bool rf_program_find(const char *name, char *path, unsigned long size);

/* Tells the name and the path of each library that the loader would bring along; the path is the name where it finds none. */
void rf_program_libraries(const char *path, const struct rf_places *places,
                          void (*visit)(void *context, const char *name, const char *path), void *context);

/* Puts a directory, or a file, first in a list like LD_LIBRARY_PATH. */
void rf_put_first(const char *variable, const char *directory);

/* Can it be watched? If not, `reason` says why and what to do, in one line. */
bool rf_program_watchable(const struct rf_program *program, const char *path, const struct rf_places *places, char *reason,
                          unsigned long size);

#endif
