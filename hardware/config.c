/* See hardware/config.h. */
#include "hardware/config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "trace/grow.h"

static const struct setting {
    const char *name;
    size_t offset;
    uint64_t value, least, most;
    const char *words; /* NULL: a number */
    const char *text;
} settings[] = {
#define RF_NUMBER(name, value, least, most, text) { #name, offsetof(struct rf_config, name), value, least, most, NULL, text },
#define RF_CHOICE(name, value, words, text) { #name, offsetof(struct rf_config, name), value, 0, 0, words, text },
#include "hardware/config.def"
#undef RF_NUMBER
#undef RF_CHOICE
};
#define SETTINGS (sizeof settings / sizeof settings[0])

static uint64_t *place_of(struct rf_config *config, const struct setting *setting)
{
    return (uint64_t *)(void *)((char *)config + setting->offset);
}

void rf_config_defaults(struct rf_config *config)
{
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < SETTINGS; i++)
        *place_of(config, &settings[i]) = settings[i].value;
}

static void add_span(struct rf_config *config, struct rf_span span)
{
    config->race_free = rf_reserve(config->race_free, &config->race_free_capacity, config->race_free_count + 1, sizeof span);
    config->race_free[config->race_free_count++] = span;
}

static void add_untracked(struct rf_config *config, const char *name, size_t length)
{
    char *copy = rf_zeroed(length + 1, 1);
    memcpy(copy, name, length);
    config->untracked =
        rf_reserve(config->untracked, &config->untracked_capacity, config->untracked_count + 1, sizeof copy);
    config->untracked[config->untracked_count++] = copy;
}

void rf_config_copy(struct rf_config *to, const struct rf_config *from)
{
    *to = *from;
    to->race_free = NULL;
    to->untracked = NULL;
    to->race_free_count = to->race_free_capacity = to->untracked_count = to->untracked_capacity = 0;
    for (size_t i = 0; i < from->race_free_count; i++)
        add_span(to, from->race_free[i]);
    for (size_t i = 0; i < from->untracked_count; i++)
        add_untracked(to, from->untracked[i], strlen(from->untracked[i]));
}

void rf_config_free(struct rf_config *config)
{
    for (size_t i = 0; i < config->untracked_count; i++)
        free(config->untracked[i]);
    free(config->untracked);
    free(config->race_free);
    config->untracked = NULL;
    config->race_free = NULL;
    config->untracked_count = config->race_free_count = 0;
}

/* A number with K or M behind it, or hexadecimal; `end` is where it stops, `text` itself if there is none. */
static uint64_t number_of(const char *text, const char **end)
{
    char *stop;
    *end = text;
    if (*text < '0' || *text > '9')
        return 0;
    errno = 0;
    uint64_t number = strtoull(text, &stop, strncmp(text, "0x", 2) ? 10 : 16);
    unsigned shift = *stop == 'K' ? 10 : *stop == 'M' ? 20 : 0;
    if (errno || number > UINT64_MAX >> shift)
        return 0;
    *end = stop + (shift != 0);
    return number << shift;
}

/* The place of a word in "a|b|c"; -1: it is not there. */
static int word_of(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (int place = 0;; place++) {
        size_t this = strcspn(words, "|");
        if (this == length && !memcmp(words, word, length))
            return place;
        if (!words[this])
            return -1;
        words += this + 1;
    }
}

static bool set_span(struct rf_config *config, const char *value, char *message, size_t size)
{
    const char *dash, *end;
    struct rf_span span = { .begin = number_of(value, &dash) };
    if (dash != value && *dash == '-') {
        span.end = number_of(dash + 1, &end);
        if (end != dash + 1 && !*end && span.begin < span.end) {
            add_span(config, span);
            return true;
        }
    }
    snprintf(message, size, "race_free takes two addresses, BEGIN-END, not '%s'", value);
    return false;
}

static bool set_one(struct rf_config *config, const char *name, const char *value, char *message, size_t size)
{
    if (!strcmp(name, "race_free"))
        return set_span(config, value, message, size);
    if (!strcmp(name, "untracked")) {
        add_untracked(config, value, strlen(value));
        return true;
    }
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct setting *setting = &settings[i];
        if (strcmp(setting->name, name) != 0)
            continue;
        if (setting->words) {
            int place = word_of(setting->words, value);
            if (place < 0) {
                snprintf(message, size, "%s takes %s, not '%s'", name, setting->words, value);
                return false;
            }
            *place_of(config, setting) = (uint64_t)place;
            return true;
        }
        const char *end;
        uint64_t number = number_of(value, &end);
        if (end == value || *end || number < setting->least || number > setting->most) {
            snprintf(message, size, "%s takes a number from %" PRIu64 " to %" PRIu64 ", not '%s'", name, setting->least,
                     setting->most, value);
            return false;
        }
        *place_of(config, setting) = number;
        return true;
    }
    snprintf(message, size, "there is no setting '%s'", name);
    return false;
}

/* The words on both sides of the '=', without the space around them. */
bool rf_config_set(struct rf_config *config, const char *setting, char *message, size_t size)
{
    char name[64], value[512];
    const char *equals = strchr(setting, '=');
    if (!equals) {
        snprintf(message, size, "a setting is NAME=VALUE, not '%s'", setting);
        return false;
    }
    const char *begin = setting + strspn(setting, " \t"), *end = equals;
    while (end > begin && strchr(" \t", end[-1]))
        end--;
    snprintf(name, sizeof name, "%.*s", (int)(end - begin), begin);
    begin = equals + 1 + strspn(equals + 1, " \t");
    end = begin + strlen(begin);
    while (end > begin && strchr(" \t\r\n", end[-1]))
        end--;
    if (end == begin || (size_t)(end - begin) >= sizeof value) {
        snprintf(message, size, "%s has %s value", name, end == begin ? "no" : "too long a");
        return false;
    }
    snprintf(value, sizeof value, "%.*s", (int)(end - begin), begin);
    return set_one(config, name, value, message, size);
}

bool rf_config_read(struct rf_config *config, const char *path, char *message, size_t size)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(message, size, "%s: %s", path, strerror(errno));
        return false;
    }
    char line[1024], why[400];
    bool good = true;
    for (unsigned number = 1; good && fgets(line, sizeof line, file); number++) {
        bool whole = strchr(line, '\n') || feof(file);
        line[strcspn(line, "#\r\n")] = 0;
        if (whole && !line[strspn(line, " \t")])
            continue;
        snprintf(why, sizeof why, "the line is too long");
        good = whole && rf_config_set(config, line, why, sizeof why);
        if (!good)
            snprintf(message, size, "%s:%u: %s", path, number, why);
    }
    if (good && ferror(file)) {
        snprintf(message, size, "%s: %s", path, strerror(errno));
        good = false;
    }
    fclose(file);
    return good;
}

static bool power_of_two(uint64_t number)
{
    return number && !(number & (number - 1));
}

static bool check_cache(const char *name, uint64_t bytes, uint64_t ways, uint64_t line, char *message, size_t size)
{
    if (bytes % (ways * line) == 0 && power_of_two(bytes / (ways * line)))
        return true;
    snprintf(message, size, "%s_bytes must be %s_ways * line_bytes * a power of two, and %" PRIu64 " is not", name, name, bytes);
    return false;
}

bool rf_config_check(const struct rf_config *config, char *message, size_t size)
{
    const char *odd = !power_of_two(config->line_bytes)   ? "line_bytes"
                      : !power_of_two(config->page_bytes) ? "page_bytes"
                                                          : NULL;
    if (odd) {
        snprintf(message, size, "%s must be a power of two", odd);
        return false;
    }
    if (config->page_bytes < config->line_bytes) {
        snprintf(message, size, "a page is not smaller than a line: page_bytes %" PRIu64 ", line_bytes %" PRIu64,
                 config->page_bytes, config->line_bytes);
        return false;
    }
    if (config->l1_bytes > config->l2_bytes || config->l2_bytes > config->llc_bytes) {
        snprintf(message, size, "a cache holds all that is in the one before: l1_bytes <= l2_bytes <= llc_bytes");
        return false;
    }
    return check_cache("l1", config->l1_bytes, config->l1_ways, config->line_bytes, message, size) &&
           check_cache("l2", config->l2_bytes, config->l2_ways, config->line_bytes, message, size) &&
           check_cache("llc", config->llc_bytes, config->llc_ways, config->line_bytes, message, size);
}

void rf_config_print(const struct rf_config *config, FILE *out)
{
    fputs("# The machine that `redflag simulate` models. A file may change any of these; so may --set NAME=VALUE.\n", out);
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct setting *setting = &settings[i];
        uint64_t value = *(const uint64_t *)(const void *)((const char *)config + setting->offset);
        char text[32];
        if (setting->words) {
            const char *word = setting->words;
            for (uint64_t skip = value; skip; skip--)
                word += strcspn(word, "|") + 1;
            snprintf(text, sizeof text, "%.*s", (int)strcspn(word, "|"), word);
        } else {
            bool mega = value >= 1 << 20 && value % (1 << 20) == 0, kilo = value >= 1 << 10 && value % (1 << 10) == 0;
            snprintf(text, sizeof text, "%" PRIu64 "%s", value >> (mega ? 20 : kilo ? 10 : 0), mega ? "M" : kilo ? "K" : "");
        }
        fprintf(out, "%-14s = %-8s # %s%s%s\n", setting->name, text, setting->text, setting->words ? ": " : "",
                setting->words ? setting->words : "");
    }
    fputs("# race_free    = BEGIN-END   addresses that hold nothing shared: accesses there need no check; may be repeated\n"
          "# untracked    = NAME        accesses at sites whose name begins so need no check; may be repeated\n",
          out);
    for (size_t i = 0; i < config->race_free_count; i++)
        fprintf(out, "race_free      = 0x%" PRIx64 "-0x%" PRIx64 "\n", config->race_free[i].begin, config->race_free[i].end);
    for (size_t i = 0; i < config->untracked_count; i++)
        fprintf(out, "untracked      = %s\n", config->untracked[i]);
}
