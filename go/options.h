/* What GORACE and REDFLAG_OPTIONS say. */
#ifndef RF_GO_OPTIONS_H
#define RF_GO_OPTIONS_H

#include "go/system.h"

static struct {
    char log_path[4096]; /* "stderr", "stdout", or the beginning of a file's name */
    char strip_path_prefix[4096];
    char detector[32];
    long exitcode, halt_on_error, atexit_sleep_ms, suppress_equal_stacks, seed, period, needless;
    double rate;
} settings = { .log_path = "stderr", .exitcode = 66, .atexit_sleep_ms = 1000, .suppress_equal_stacks = 1, .seed = 1, .rate = -1 };

static const struct option {
    const char *name;
    long *number;
    char *text;
    size_t size;
    double *share;
} known_options[] = {
    { "log_path", NULL, settings.log_path, sizeof settings.log_path, NULL },
    { "strip_path_prefix", NULL, settings.strip_path_prefix, sizeof settings.strip_path_prefix, NULL },
    { "exitcode", &settings.exitcode, NULL, 0, NULL },
    { "halt_on_error", &settings.halt_on_error, NULL, 0, NULL },
    { "atexit_sleep_ms", &settings.atexit_sleep_ms, NULL, 0, NULL },
    { "suppress_equal_stacks", &settings.suppress_equal_stacks, NULL, 0, NULL },
    { "suppress_equal_addresses", &settings.needless, NULL, 0, NULL }, /* they never were */
    { "history_size", &settings.needless, NULL, 0, NULL },             /* stacks are never forgotten */
    { "detector", NULL, settings.detector, sizeof settings.detector, NULL },
    { "rate", NULL, NULL, 0, &settings.rate },
    { "seed", &settings.seed, NULL, 0, NULL },
    { "period", &settings.period, NULL, 0, NULL },
};

static bool option_is_blank(char c)
{
    return c == ' ' || c == ',' || c == ':' || c == '\n' || c == '\t' || c == '\r';
}

/* Both variables may hold what is meant for other runtimes: it is said, and the run goes on. */
static void option_unknown(const char *variable, const char *at, size_t length)
{
    char line[256];
    size_t used = 0;
    const char *pieces[] = { variable, ": '", NULL, "' is not known here, or has no such value: ignored\n" };
    for (unsigned i = 0; i < 4; i++) {
        const char *piece = pieces[i] ? pieces[i] : at;
        size_t size = pieces[i] ? strlen(piece) : length > 100 ? 100 : length;
        memcpy(line + used, piece, size);
        used += size;
    }
    write_all(2, "redflag: ", 9);
    write_all(2, line, used);
}

/* One NAME=VALUE; the value ends at `end`. */
static bool option_set(const char *name, size_t name_size, const char *value, const char *end)
{
    char text[64];
    for (unsigned i = 0; i < sizeof known_options / sizeof *known_options; i++) {
        const struct option *option = &known_options[i];
        size_t size = (size_t)(end - value);
        if (strlen(option->name) != name_size || memcmp(option->name, name, name_size) != 0)
            continue;
        if (option->text) {
            size = size < option->size ? size : option->size - 1;
            memcpy(option->text, value, size);
            option->text[size] = 0;
            return true;
        }
        if (!size || size >= sizeof text)
            return false;
        memcpy(text, value, size);
        text[size] = 0;
        if (!strcmp(text, "true") || !strcmp(text, "false"))
            strcpy(text, *text == 't' ? "1" : "0");
        char *rest;
        if (option->number)
            *option->number = strtol(text, &rest, 0);
        else
            *option->share = strtod(text, &rest);
        return !*rest;
    }
    return false;
}

/* NAME=VALUE, apart by blanks, commas or colons; a value may be quoted. */
static void options_from(const char *variable)
{
    const char *at = getenv(variable);
    while (at && *at) {
        while (option_is_blank(*at))
            at++;
        const char *name = at;
        while (*at && *at != '=' && !option_is_blank(*at))
            at++;
        if (at == name)
            break;
        size_t name_size = (size_t)(at - name);
        if (*at != '=') {
            option_unknown(variable, name, name_size);
            continue;
        }
        const char *value = ++at, *end;
        if (*at == '"' || *at == '\'') {
            char quote = *at;
            value = ++at;
            while (*at && *at != quote)
                at++;
            end = at;
            at += *at != 0;
        } else {
            while (*at && !option_is_blank(*at))
                at++;
            end = at;
        }
        if (!option_set(name, name_size, value, end))
            option_unknown(variable, name, (size_t)(at - name));
    }
}

#endif
