/* The simulated machine's settings: a default for each, a file that changes some, and what must hold between them.
 *
 * 1. A configuration that rf_config_check() has passed is one that the machine can be built from.
 * 2. What is wrong with a file is one line that names the file and the line.
 */
#ifndef RF_HARDWARE_CONFIG_H
#define RF_HARDWARE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum rf_encoding { RF_ENCODING_FULL, RF_ENCODING_COMPACT };
enum rf_flush { RF_FLUSH_EAGER, RF_FLUSH_LAZY };
enum rf_handlers { RF_HANDLERS_SAME, RF_HANDLERS_OTHER };

/* Addresses from begin up to, not including, end. */
struct rf_span {
    uint64_t begin, end;
};

struct rf_config {
#define RF_NUMBER(name, value, least, most, text) uint64_t name;
#define RF_CHOICE(name, value, words, text) uint64_t name;
#include "hardware/config.def"
#undef RF_NUMBER
#undef RF_CHOICE
    /* Accesses that need no check (3.2.5): pages that hold nothing shared, and sites that a compiler proved. */
    struct rf_span *race_free;
    size_t race_free_count, race_free_capacity;
    char **untracked; /* a site whose name begins with one of these is not tracked */
    size_t untracked_count, untracked_capacity;
};

void rf_config_defaults(struct rf_config *config);
void rf_config_copy(struct rf_config *to, const struct rf_config *from);
void rf_config_free(struct rf_config *config);
/* "name=value", as on a line of a file. false: message says what is wrong. */
bool rf_config_set(struct rf_config *config, const char *setting, char *message, size_t size);
/* A file of such lines; # begins a comment. */
bool rf_config_read(struct rf_config *config, const char *path, char *message, size_t size);
/* What must hold between settings. */
bool rf_config_check(const struct rf_config *config, char *message, size_t size);
/* As a file, with what each setting means. */
void rf_config_print(const struct rf_config *config, FILE *out);

#endif
