/* Sites: the static program locations of accesses, and their names.
 *
 * 1. A site is a call of a hook in a module. It is stable over runs and machines: the module's build id and the offset of the last byte
 *    of the call in the module's file. That is the build id and offset of frame #0 in reports of an access there (doc/json.md).
 *    A module without a build id goes by its file's name.
 * 2. Debug information gives it a function, file, line and column: those of frame #0 of a report.
 * 3. A name of sites is one of
 *        BUILD-ID+0xOFFSET     one site; 8 digits of the build id or more suffice
 *        MODULE+0xOFFSET       the same by the file's name
 *        FILE:LINE             all sites of the line; the end of a path suffices, from a '/' on
 *        FILE:LINE:COLUMN      those of one column
 *        @FUNCTION             all sites of a function, which no pair names but lists of candidates do
 *    FILE:LINE means all of its sites, in all files and modules to which the name fits; rf_site_list_ambiguous() says if these are
 *    several files.
 * 4. The file may be anything: every offset in it is checked.
 */
#ifndef RF_SITES_LIST_H
#define RF_SITES_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sites/hook.h"

struct rf_site_module {
    char *path;
    char build_id[65]; /* "": it has none */
    bool instrumented; /* it calls hooks at all */
    bool inlined;      /* hooks are part of its code (redflag cc --inline): accesses there are no sites */
    struct rf_site *sites; /* by offset */
    size_t count, cap;
    struct rf_symbolizer *symbols;
};

struct rf_site {
    const struct rf_site_module *module;
    uint64_t offset;
    const char *hook_name; /* "__tsan_read4" */
    struct rf_hook hook;
    bool jump;             /* a tail call */
    const char *file;      /* NULL: not known */
    uint32_t line, column;
};

struct rf_site_list {
    struct rf_site_module **modules;
    size_t count, cap;
};

/* Adds the sites of one file. False with a reason in `error` if it is no module for x86-64; one without hooks has no sites. */
bool rf_site_list_add(struct rf_site_list *list, const char *path, char error[256]);
void rf_site_list_free(struct rf_site_list *list);

/* The sites that a name means: returns how many there are, and the first `most` of them. 0: none, or no name. */
size_t rf_site_list_find(const struct rf_site_list *list, const char *name, const struct rf_site **found, size_t most);
/* Has the text the form of a name? */
bool rf_site_is_name(const char *name);
/* Do the sites lie in several source files, though one name was given? Then *other is one of another file than the first. */
bool rf_site_list_ambiguous(const struct rf_site *const *found, size_t count, const struct rf_site **other);
/* The site at an offset of the module with that build id, or path or name of a file; NULL: none. */
const struct rf_site *rf_site_at(const struct rf_site_list *list, const char *module, uint64_t offset);

/* FILE:LINE of BUILD-ID+0xOFFSET or MODULE+0xOFFSET, the last byte of any call. False: not known. */
bool rf_site_list_line(const struct rf_site_list *list, const char *name, char *to, size_t size);

/* A name taken apart. */
struct rf_site_pattern {
    enum { RF_SITE_BY_OFFSET, RF_SITE_BY_LINE, RF_SITE_BY_FUNCTION } kind;
    const char *text; /* the module, file or function: `length` letters of the name */
    size_t length;
    uint64_t offset;
    uint32_t line, column; /* column 0: any */
};
bool rf_site_pattern_read(const char *name, struct rf_site_pattern *pattern); /* false: it is no name */
bool rf_site_path_fits(const char *path, const char *text, size_t length);    /* is it the path, or its end from a '/' on? */
/* Is it the function's name as it is printed, or that without its parameters? */
bool rf_site_function_fits(const char *function, const char *text, size_t length);

/* Its function, as frame #0 of a report has it; NULL: not known. Takes long: the debug information of the unit is walked. */
const char *rf_site_function(const struct rf_site *site);
/* BUILD-ID+0xOFFSET, or MODULE+0xOFFSET. */
void rf_site_name(const struct rf_site *site, char *to, size_t size);
/* FILE:LINE:COLUMN, or the name if they are not known. */
void rf_site_place(const struct rf_site *site, char *to, size_t size);
/* What happens there, in words: "read of 4 bytes". */
void rf_site_words(const struct rf_site *site, char *to, size_t size);

#endif
