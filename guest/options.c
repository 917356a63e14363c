/* See guest/options.h.
 *
 * 1. Nothing here needs libc or a guest that has started: this is the first thing that the guest does.
 * 2. A text of options is copied to pages of its own, which stay, and cut there: the values point into it.
 * 3. NAME=VALUE, separated by space, comma, colon or an end of line; a value that holds one of these stands in ' or ". In names '-'
 *    and '_' are the same.
 * 4. REDFLAG_OPTIONS is ours alone: what is unknown there ends the program. TSAN_OPTIONS was perhaps written for ThreadSanitizer, so
 *    its other options are passed over, and what neither knows is only named.
 */
#include "guest/options.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "guest/memory.h"
#include "guest/system.h"
#include "guest/text.h"

struct rf_run_options rf_options = {
#define RF_BOOL(name, value, help) .name = (value),
#define RF_INT(name, value, help) .name = (value),
#define RF_TEXT(name, value, help) .name = (value),
#include "core/run_options.def"
#undef RF_BOOL
#undef RF_INT
#undef RF_TEXT
};

enum kind { IS_BOOL, IS_INT, IS_TEXT };

static const struct option {
    const char *name, *help;
    enum kind kind;
    uint32_t offset;
} options[] = {
#define RF_BOOL(name, value, help) { #name, help, IS_BOOL, offsetof(struct rf_run_options, name) },
#define RF_INT(name, value, help) { #name, help, IS_INT, offsetof(struct rf_run_options, name) },
#define RF_TEXT(name, value, help) { #name, help, IS_TEXT, offsetof(struct rf_run_options, name) },
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

static const char *const tsan_only[] = {
#define RF_TSAN_ONLY(name) #name,
#include "core/tsan_options.def"
#undef RF_TSAN_ONLY
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Where a text of options comes from. */
struct source {
    const char *name; /* of the variable, function or file */
    bool ours;        /* REDFLAG_OPTIONS, or a file that it includes */
    unsigned depth;   /* of files that include files */
};

static void read_text(const char *text, const struct source *source);

static size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

static const struct option *find(const char *name)
{
    for (size_t i = 0; i < COUNT(options); i++)
        if (rf_text_same(options[i].name, name))
            return &options[i];
    return NULL;
}

static bool one_of(const char *choices, const char *word)
{
    for (;; choices++) {
        const char *w = word;
        while (*w && *w == *choices && *w != '|')
            w++, choices++;
        if (!*w && (!*choices || *choices == '|'))
            return true;
        while (*choices && *choices != '|')
            choices++;
        if (!*choices)
            return false;
    }
}

static bool is_number(const char *text, long *value)
{
    bool negative = *text == '-';
    long number = 0;
    text += negative || *text == '+';
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || (number = number * 10 + (*text - '0')) > INT_MAX)
            return false;
    }
    *value = negative ? -number : number;
    return true;
}

static void set(const struct option *option, const char *value, const struct source *source)
{
    char *place = (char *)&rf_options + option->offset;
    const char *choices = NULL;
    long least = 0, most = INT_MAX, number;
    for (size_t i = 0; i < COUNT(allowed); i++) {
        if (rf_text_same(allowed[i].name, option->name)) {
            choices = allowed[i].choices;
            least = allowed[i].least;
            most = allowed[i].most;
        }
    }
    switch (option->kind) {
    case IS_BOOL:
        if (!one_of("0|no|false|1|yes|true", value))
            rf_die("%s: %s=%s: neither 0 nor 1", source->name, option->name, value);
        *(bool *)place = one_of("1|yes|true", value);
        break;
    case IS_INT:
        if (!is_number(value, &number))
            rf_die("%s: %s=%s: not a number", source->name, option->name, value);
        if (number < least || number > most)
            rf_die("%s: %s=%s: not between %d and %d", source->name, option->name, value, (int)least, (int)most);
        *(int *)place = (int)number;
        break;
    case IS_TEXT:
        if (choices && !one_of(choices, value))
            rf_die("%s: %s=%s: none of %s", source->name, option->name, value, choices);
        *(const char **)place = value;
        break;
    }
}

/* The name of a file with %p (number of the process), %b and %d (name and directory of the program) filled in. */
static void fill_in(const char *name, char *full, size_t size)
{
    char program[1024];
    long length = RF_SYSCALL(SYS_readlink, "/proc/self/exe", program, sizeof program - 1), slash = 0;
    program[length > 0 ? length : 0] = 0;
    for (long i = 0; i < length; i++)
        if (program[i] == '/')
            slash = i;
    const char *base = slash ? program + slash + 1 : program;
    program[slash] = slash ? 0 : program[0];
    size_t used = 0;
    for (; *name && used + 1 < size; name++) {
        if (name[0] == '%' && name[1] == 'p')
            used += rf_format(full + used, size - used, "%d", (int)RF_SYSCALL(SYS_getpid, 0));
        else if (name[0] == '%' && (name[1] == 'b' || name[1] == 'd'))
            used += rf_format(full + used, size - used, "%s", name[1] == 'b' ? base : program);
        else {
            full[used++] = name[0];
            continue;
        }
        name++;
    }
    full[used < size ? used : size - 1] = 0;
}

#define LARGEST_FILE (64u << 10)

static void include(const char *name, bool must_exist, const struct source *source)
{
    char *full = rf_pages(4096);
    fill_in(name, full, 4096);
    if (source->depth == 8)
        rf_die("%s: include=%s: files include each other too deeply", source->name, full);
    long file = RF_SYSCALL(SYS_openat, AT_FDCWD, full, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        if (must_exist)
            rf_die("%s: include=%s: the file cannot be read (error %d)", source->name, full, (int)-file);
        return;
    }
    char *text = rf_pages(LARGEST_FILE);
    long got, used = 0;
    while ((got = RF_SYSCALL(SYS_read, file, text + used, LARGEST_FILE - 1 - used)) > 0)
        used += got;
    RF_SYSCALL(SYS_close, file);
    if (got < 0 || used == LARGEST_FILE - 1)
        rf_die("%s: include=%s: %s", source->name, full, got < 0 ? "the file cannot be read" : "the file is too long");
    read_text(text, &(struct source){ full, source->ours, source->depth + 1 });
    rf_pages_back(text, LARGEST_FILE);
}

static void take(char *name, const char *value, const struct source *source)
{
    for (char *c = name; *c; c++)
        if (*c == '-')
            *c = '_';
    if (rf_text_same(name, "include") || rf_text_same(name, "include_if_exists")) {
        include(value, rf_text_same(name, "include"), source);
        return;
    }
    const struct option *option = find(name);
    /* For ThreadSanitizer this names llvm-symbolizer or its like, which cannot print our reports. */
    if (!source->ours && rf_text_same(name, "external_symbolizer_path"))
        return;
    if (option) {
        set(option, value, source);
        return;
    }
    if (source->ours)
        rf_die("%s: unknown option '%s'; REDFLAG_OPTIONS=help=1 lists them", source->name, name);
    for (size_t i = 0; i < COUNT(tsan_only); i++)
        if (rf_text_same(tsan_only[i], name))
            return;
    rf_say("%s: unknown option '%s' is ignored", source->name, name);
}

static bool separates(char c)
{
    return c == ' ' || c == ',' || c == ':' || c == '\n' || c == '\t' || c == '\r';
}

static void read_text(const char *text, const struct source *source)
{
    size_t length = length_of(text);
    if (!length)
        return;
    char *copy = rf_pages(length + 1), *at = copy;
    for (size_t i = 0; i <= length; i++)
        copy[i] = text[i];
    for (;;) {
        while (separates(*at))
            at++;
        if (!*at)
            return;
        char *name = at;
        while (*at && *at != '=' && !separates(*at))
            at++;
        if (*at != '=') {
            *at = 0;
            rf_die("%s: '%s' has no value; options are NAME=VALUE", source->name, name);
        }
        *at++ = 0;
        char *value = at;
        if (*at == '\'' || *at == '"') {
            char quote = *at++;
            value = at;
            while (*at && *at != quote)
                at++;
            if (!*at)
                rf_die("%s: the value of '%s' has no second %c", source->name, name, quote);
            *at++ = 0;
            if (*at && !separates(*at))
                rf_die("%s: '%s': a separator is missing after its value", source->name, name);
        } else {
            while (*at && !separates(*at))
                at++;
            if (*at)
                *at++ = 0;
        }
        take(name, value, source);
    }
}

static void print(const char *text)
{
    size_t length = length_of(text);
    while (length) {
        long written = RF_SYSCALL(SYS_write, 2, text, length);
        if (written <= 0)
            return;
        text += written;
        length -= (size_t)written;
    }
}

static void list(void)
{
    print("redflag: the options, REDFLAG_OPTIONS=\"NAME=VALUE:NAME=VALUE\":\n");
    for (size_t i = 0; i < COUNT(options); i++) {
        const char *place = (const char *)&rf_options + options[i].offset;
        char number[16];
        print("  ");
        print(options[i].name);
        print("=");
        if (options[i].kind == IS_TEXT) {
            print(*(const char *const *)place);
        } else {
            rf_format(number, sizeof number, "%d", options[i].kind == IS_BOOL ? *(const bool *)place : *(const int *)place);
            print(number);
        }
        print("\n        ");
        print(options[i].help);
        print("\n");
    }
    print("  include=FILE, include_if_exists=FILE\n        read more options from the file\n");
}

char *rf_environment(char **environment, const char *name)
{
    for (; environment && *environment; environment++) {
        const char *n = name;
        char *variable = *environment;
        while (*n && *n == *variable)
            n++, variable++;
        if (!*n && *variable == '=')
            return variable + 1;
    }
    return NULL;
}

/* The program's own, if it has one. */
extern const char *__tsan_default_options(void) __attribute__((weak, visibility("default")));

void rf_options_read(char **environment)
{
    const char *text = &__tsan_default_options ? __tsan_default_options() : NULL;
    if (text)
        read_text(text, &(struct source){ "__tsan_default_options()", false, 0 });
    if ((text = rf_environment(environment, "TSAN_OPTIONS")))
        read_text(text, &(struct source){ "TSAN_OPTIONS", false, 0 });
    if ((text = rf_environment(environment, "REDFLAG_OPTIONS")))
        read_text(text, &(struct source){ "REDFLAG_OPTIONS", true, 0 });
    if (rf_options.help)
        list();
}

double rf_share_of(const char *text)
{
    double value = 0, place = 1;
    const char *at = text;
    bool point = false, digits = false;
    for (; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        digits = true;
        place = point ? place / 10 : place;
        value = point ? value + place * (*at - '0') : 10 * value + (*at - '0');
    }
    if (*at == '%' && digits) {
        value /= 100;
        at++;
    }
    if (*at || !digits || value > 1)
        rf_die("rate takes a share from 0 to 1, not '%s'", text);
    return value;
}
