/* See cli/run_options.h. The names, values and explanations are those of core/run_options.def; nothing is listed twice. */
#include "cli/run_options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/grow.h"

enum kind { IS_BOOL, IS_INT, IS_TEXT };

static const struct option {
    const char *name;
    enum kind kind;
    const char *value, *help;
} options[] = {
#define RF_BOOL(name, value, help) { #name, IS_BOOL, (value) ? "yes" : "no", help },
#define RF_INT(name, value, help) { #name, IS_INT, #value, help },
#define RF_TEXT(name, value, help) { #name, IS_TEXT, value, help },
#include "core/run_options.def"
#undef RF_BOOL
#undef RF_INT
#undef RF_TEXT
};

static const struct {
    const char *name, *choices;
    int least, most;
} allowed[] = {
#define RF_CHOICE(name, choices) { #name, choices, 0, 0 },
#define RF_RANGE(name, least, most) { #name, NULL, least, most },
#include "core/run_values.def"
#undef RF_CHOICE
#undef RF_RANGE
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    char letter;
    const char *name;
} letters[] = { { 'd', "detector" }, { 'o', "output" }, { 'f', "format" } };

void rf_run_text_add(struct rf_run_text *text, const char *added)
{
    size_t length = strlen(added);
    text->text = rf_resize(text->text, text->length + length + 2);
    if (text->length)
        text->text[text->length++] = ':';
    memcpy(text->text + text->length, added, length + 1);
    text->length += length;
}

/* `length` letters of a name as it was typed: is it this one? '-' and '_' are the same. */
static bool named(const char *typed, size_t length, const char *name)
{
    for (size_t i = 0; i < length; i++)
        if ((typed[i] == '-' ? '_' : typed[i]) != name[i])
            return false;
    return !name[length];
}

static const struct option *find(const char *typed, size_t length)
{
    for (size_t i = 0; i < COUNT(options); i++)
        if (named(typed, length, options[i].name))
            return &options[i];
    return NULL;
}

static bool one_of(const char *choices, const char *word)
{
    size_t length = strlen(word);
    for (;;) {
        size_t here = strcspn(choices, "|");
        if (here == length && !memcmp(choices, word, length))
            return true;
        if (!choices[here])
            return false;
        choices += here + 1;
    }
}

static bool fits(const struct option *option, const char *value, const char *who)
{
    const char *choices = option->kind == IS_BOOL ? "0|1|no|yes|false|true" : NULL;
    long least = 0, most = INT_MAX;
    for (size_t i = 0; i < COUNT(allowed); i++) {
        if (!strcmp(allowed[i].name, option->name)) {
            choices = allowed[i].choices;
            least = allowed[i].least;
            most = allowed[i].most;
        }
    }
    if (choices && !one_of(choices, value)) {
        fprintf(stderr, "%s: --%s takes one of %s, not '%s'\n", who, option->name, choices, value);
        return false;
    }
    if (option->kind != IS_INT)
        return true;
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno || end == value || *end || number < least || number > most) {
        fprintf(stderr, "%s: --%s takes a number from %ld to %ld, not '%s'\n", who, option->name, least, most, value);
        return false;
    }
    return true;
}

/* The program may change its directory before a file is opened. */
static char *absolute(const struct option *option, const char *value)
{
    static const char files[] = "output|suppressions|log_path";
    char here[PATH_MAX];
    bool relative = one_of(files, option->name) && *value && *value != '/' && *value != '~' && !one_of("stdout|stderr|-", value);
    if (!relative || !getcwd(here, sizeof here))
        here[0] = 0;
    char *path = rf_zeroed(strlen(here) + strlen(value) + 2, 1);
    sprintf(path, "%s%s%s", here, here[0] ? "/" : "", value);
    return path;
}

static bool append(struct rf_run_text *text, const struct option *option, const char *typed, const char *who)
{
    if (!fits(option, typed, who))
        return false;
    char *value = absolute(option, typed);
    const char *quote = "";
    if (strpbrk(value, " ,:\n\t\r'\"") || !*value)
        quote = strchr(value, '"') ? "'" : "\"";
    bool possible = !*quote || !strchr(value, *quote);
    if (!possible) {
        fprintf(stderr, "%s: --%s: a value with both kinds of quotes cannot be passed on: %s\n", who, option->name, value);
    } else {
        char *setting = rf_zeroed(strlen(option->name) + strlen(value) + 4, 1);
        sprintf(setting, "%s=%s%s%s", option->name, quote, value, quote);
        rf_run_text_add(text, setting);
        free(setting);
    }
    free(value);
    return possible;
}

bool rf_run_option(struct rf_run_text *text, const char *who, char **arguments, int count, int *used)
{
    const char *argument = arguments[0], *value = NULL;
    const struct option *option = NULL;
    *used = 1;
    if (argument[0] != '-' || !argument[1])
        return false;
    if (argument[1] == '-') {
        size_t length = strcspn(argument + 2, "=");
        option = find(argument + 2, length);
        if (argument[2 + length])
            value = argument + 2 + length + 1;
        if (!option && !value && length > 3 && (!strncmp(argument + 2, "no-", 3) || !strncmp(argument + 2, "no_", 3))) {
            option = find(argument + 5, length - 3);
            if (option && option->kind != IS_BOOL)
                option = NULL;
            value = "0";
        }
        if (option && option->kind == IS_BOOL && !value)
            value = "1";
    } else {
        for (size_t i = 0; i < COUNT(letters); i++)
            if (argument[1] == letters[i].letter)
                option = find(letters[i].name, strlen(letters[i].name));
        if (argument[2])
            value = argument + 2;
    }
    if (!option)
        return false;
    if (!value && count < 2) {
        fprintf(stderr, "%s: a value is missing after %s\n", who, argument);
        *used = 0;
        return true;
    }
    if (!value) {
        value = arguments[1];
        *used = 2;
    }
    if (!append(text, option, value, who))
        *used = 0;
    return true;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (names && *names)
        if (strcmp(*names++, name) == 0)
            return true;
    return false;
}

void rf_run_options_help(const char *const *without)
{
    for (size_t i = 0; i < COUNT(options); i++) {
        if (is_one_of(options[i].name, without))
            continue;
        char shown[64] = "", letter[4] = "";
        for (size_t l = 0; l < COUNT(letters); l++)
            if (!strcmp(letters[l].name, options[i].name))
                sprintf(letter, "-%c,", letters[l].letter);
        snprintf(shown, sizeof shown, "--%s%s", options[i].name,
                 options[i].kind == IS_BOOL  ? ""
                 : options[i].kind == IS_INT ? " N"
                                             : " TEXT");
        for (char *c = shown; *c; c++)
            if (*c == '_')
                *c = '-';
        printf("  %3s %s\n          %s", letter, shown, options[i].help);
        printf(*options[i].value ? " (default: %s)\n" : "\n", options[i].value);
    }
}
