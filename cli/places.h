/* Where the runtime lies: beside this command, in the build tree or where it was installed. */
#ifndef RF_CLI_PLACES_H
#define RF_CLI_PLACES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define RF_RT_NAME "libredflag-rt.so.0"

struct rf_places {
    char command[PATH_MAX]; /* this command */
    char library[PATH_MAX]; /* the runtime itself */
    char lib[PATH_MAX];     /* its directory: for linking, and for the loader afterwards */
    char include[PATH_MAX]; /* where redflag.h lies; empty: it is not there */
    char chase[PATH_MAX];   /* the same for the library of `redflag chase`; empty: it is not there */
    char tsan[PATH_MAX];       /* the directory where it goes by the names of gcc's runtime, and nothing else lies */
};

/* False, with one line that says where it was looked for, if it is in neither place. Nothing is said if `who` is NULL. */
bool rf_cli_places(struct rf_places *places, const char *who);

/* The plugin for gcc of this version (plugin/main.cc), by the name by which it makes fewer checks, or only those of copies; false: there is none. */
bool rf_cli_plugin(const struct rf_places *places, const char *version, bool fewer, char *path, size_t size);

#endif
