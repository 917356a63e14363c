/* printf() and scanf(): which arguments are read and written, the format says.
 *
 * 1. A format is walked once: it yields what each argument is and what is done through it. Then the arguments are fetched in order,
 *    which also serves formats that number theirs (%2$s).
 * 2. Formats of more than MOST arguments are looked at up to there. Wide formats are read themselves; their arguments are not looked
 *    at.
 * 3. What scanf() has written is known by how many conversions it says it has made.
 */
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>
#include <wchar.h>

#include "guest/fd.h"
#include "guest/libc.h"
#include "guest/signals.h"

enum { MOST = 64 };

enum what { NOTHING, INTEGER, REAL, LONG_REAL, TEXT, WIDE_TEXT, COUNT };

struct format {
    unsigned arguments; /* how many are used */
    uint8_t what[MOST]; /* NOTHING: a hole that no conversion names; taken for an integer */
    unsigned conversions;
    struct conversion {
        uint8_t argument, what, size;
        int precision;          /* -1: none */
        int precision_argument; /* -1: none */
    } list[MOST];
};

static const char *decimal(const char *s, int *value)
{
    for (*value = 0; *s >= '0' && *s <= '9'; s++)
        *value = *value < 100000000 ? *value * 10 + (*s - '0') : *value;
    return s;
}

/* "2$" or nothing: the argument's number, or -1. */
static const char *numbered(const char *s, int *number)
{
    int value;
    const char *end = decimal(s, &value);
    *number = -1;
    if (end == s || *end != '$')
        return s;
    *number = value - 1;
    return end + 1;
}

static int argument(struct format *format, unsigned *next, int number, enum what what)
{
    unsigned index = number >= 0 ? (unsigned)number : (*next)++;
    if (index >= MOST)
        return -1;
    format->what[index] = (uint8_t)what;
    if (index >= format->arguments)
        format->arguments = index + 1;
    return (int)index;
}

/* The bytes that a length modifier stands for; 4 if there is none. */
static const char *modifier(const char *s, unsigned *size)
{
    *size = 4;
    for (;; s++)
        switch (*s) {
        case 'h':
            *size = *size == 2 ? 1 : 2;
            break;
        case 'l':
        case 'q':
        case 'j':
        case 'z':
        case 'Z':
        case 't':
            *size = 8;
            break;
        case 'L':
            *size = 16;
            break;
        default:
            return s;
        }
}

static void read_printf_format(struct format *format, const char *s)
{
    unsigned next = 0, size;
    format->arguments = format->conversions = 0;
    for (unsigned i = 0; i < MOST; i++)
        format->what[i] = NOTHING;
    while (*s && format->conversions < MOST) {
        if (*s++ != '%')
            continue;
        int number, star, value;
        struct conversion c = { .precision = -1, .precision_argument = -1 };
        s = numbered(s, &number);
        while (*s == '-' || *s == '+' || *s == ' ' || *s == '#' || *s == '0' || *s == '\'' || *s == 'I')
            s++;
        if (*s == '*') {
            s = numbered(s + 1, &star);
            argument(format, &next, star, INTEGER);
        } else {
            s = decimal(s, &value);
        }
        if (*s == '.') {
            if (*++s == '*') {
                s = numbered(s + 1, &star);
                c.precision_argument = argument(format, &next, star, INTEGER);
            } else {
                s = decimal(s, &c.precision);
            }
        }
        s = modifier(s, &size);
        enum what what = INTEGER;
        switch (*s) {
        case '\0':
            return;
        case '%':
        case 'm':
            s++;
            continue;
        case 's':
            what = size == 8 ? WIDE_TEXT : TEXT;
            break;
        case 'S':
            what = WIDE_TEXT;
            break;
        case 'n':
            what = COUNT;
            break;
        case 'a':
        case 'A':
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
            what = size == 16 ? LONG_REAL : REAL;
            break;
        default:
            break;
        }
        s++;
        int index = argument(format, &next, number, what);
        if (index < 0)
            return;
        c.argument = (uint8_t)index;
        c.what = (uint8_t)what;
        c.size = (uint8_t)size;
        format->list[format->conversions++] = c;
    }
}

static void fetch(const struct format *format, va_list list, uintptr_t *values)
{
    for (unsigned i = 0; i < format->arguments; i++)
        if (format->what[i] == REAL)
            (void)va_arg(list, double);
        else if (format->what[i] == LONG_REAL)
            (void)va_arg(list, long double);
        else
            values[i] = va_arg(list, uintptr_t);
}

static void read_text(const struct rf_scope *scope, const struct conversion *c, uintptr_t value, int most)
{
    if (!value)
        return; /* printed as "(null)" */
    size_t limit = most < 0 ? SIZE_MAX : (size_t)most, n = 0;
    if (c->what == TEXT) {
        n = rf_length_up_to((const char *)value, limit);
        rf_libc_access(scope, (const char *)value, n + (n < limit), 0);
    } else {
        const wchar_t *text = (const wchar_t *)value; /* the limit is in bytes of output, of which each character has one at least */
        while (n < limit && text[n])
            n++;
        rf_libc_access(scope, text, (n + (n < limit)) * sizeof *text, 0);
    }
}

static void printed(const struct rf_scope *scope, const char *text, va_list arguments)
{
    struct format format;
    uintptr_t values[MOST];
    va_list list;
    rf_libc_access(scope, text, rf_length(text) + 1, 0);
    read_printf_format(&format, text);
    va_copy(list, arguments);
    fetch(&format, list, values);
    va_end(list);
    for (unsigned i = 0; i < format.conversions; i++) {
        const struct conversion *c = &format.list[i];
        if (c->what == COUNT)
            rf_libc_access(scope, (void *)values[c->argument], c->size, RF_A_WRITE);
        else if (c->what == TEXT || c->what == WIDE_TEXT)
            read_text(scope, c, values[c->argument], c->precision_argument < 0 ? c->precision : (int)values[c->precision_argument]);
    }
}

/* --- printf ---------------------------------------------------------------------------------------------------------------- */

#define STREAM(f) (rf_access((uintptr_t)(f), 1, 0, scope.pc), rf_fd_releases(rf_stream_fd(f)))
#define DESCRIPTOR(fd) (rf_fd_used(&scope, fd), rf_fd_releases(fd))
#define STRING(size) (result >= 0 ? W(s, (size_t)result + 1 < (size) ? (size_t)result + 1 : (size)) : (void)0)

#define BODY(type, name, vname, arguments, before, after)     \
    struct rf_scope scope = RF_ENTER(name);                   \
    if (scope.self) {                                         \
        rf_signal_unsafe(#name, scope.pc);                    \
        printed(&scope, format, list);                        \
        before;                                               \
    }                                                         \
    type result = RF_REAL(vname) arguments;                   \
    if (scope.self) {                                         \
        after;                                                \
        rf_leave(&scope);                                     \
    }

/* Both forms of a function: with a list, and with the arguments themselves, which the one with a list serves. */
#define PRINTS(name, vname, parameters, variable, arguments, before, after) \
    RF_INTERCEPT(int, vname, parameters)                                    \
    {                                                                       \
        BODY(int, vname, vname, arguments, before, after)                   \
        return result;                                                      \
    }                                                                       \
    RF_INTERCEPT(int, name, variable)                                       \
    {                                                                       \
        va_list list;                                                       \
        va_start(list, format);                                             \
        BODY(int, name, vname, arguments, before, after)                    \
        va_end(list);                                                       \
        return result;                                                      \
    }
#define P(...) (__VA_ARGS__, const char *format, va_list list)
#define V(...) (__VA_ARGS__, const char *format, ...)

PRINTS(printf, vprintf, (const char *format, va_list list), (const char *format, ...), (format, list), , )
PRINTS(__printf_chk, __vprintf_chk, P(int flag), V(int flag), (flag, format, list), , )
PRINTS(fprintf, vfprintf, P(FILE *f), V(FILE *f), (f, format, list), STREAM(f), )
PRINTS(__fprintf_chk, __vfprintf_chk, P(FILE *f, int flag), V(FILE *f, int flag), (f, flag, format, list), STREAM(f), )
PRINTS(dprintf, vdprintf, P(int fd), V(int fd), (fd, format, list), DESCRIPTOR(fd), )
PRINTS(__dprintf_chk, __vdprintf_chk, P(int fd, int flag), V(int fd, int flag), (fd, flag, format, list), DESCRIPTOR(fd), )
PRINTS(sprintf, vsprintf, P(char *s), V(char *s), (s, format, list), , STRING(SIZE_MAX))
PRINTS(__sprintf_chk, __vsprintf_chk, P(char *s, int flag, size_t room), V(char *s, int flag, size_t room),
       (s, flag, room, format, list), , STRING(SIZE_MAX))
PRINTS(snprintf, vsnprintf, P(char *s, size_t n), V(char *s, size_t n), (s, n, format, list), , STRING(n))
PRINTS(__snprintf_chk, __vsnprintf_chk, P(char *s, size_t n, int flag, size_t room), V(char *s, size_t n, int flag, size_t room),
       (s, n, flag, room, format, list), , STRING(n))
PRINTS(asprintf, vasprintf, P(char **s), V(char **s), (s, format, list), , if (result >= 0) WO(s))
PRINTS(__asprintf_chk, __vasprintf_chk, P(char **s, int flag), V(char **s, int flag), (s, flag, format, list), ,
       if (result >= 0) WO(s))

/* The same without a result. */
#define SAYS(name, vname, parameters, variable, arguments)                  \
    RF_INTERCEPT(void, vname, parameters)                                   \
    {                                                                       \
        struct rf_scope scope = RF_ENTER(vname);                            \
        if (scope.self && format)                                           \
            printed(&scope, format, list);                                  \
        RF_REAL(vname) arguments;                                           \
        rf_leave(&scope);                                                   \
    }                                                                       \
    RF_INTERCEPT(void, name, variable)                                      \
    {                                                                       \
        struct rf_scope scope = RF_ENTER(name);                             \
        va_list list;                                                       \
        va_start(list, format);                                             \
        if (scope.self && format)                                           \
            printed(&scope, format, list);                                  \
        RF_REAL(vname) arguments;                                           \
        va_end(list);                                                       \
        rf_leave(&scope);                                                   \
    }
SAYS(syslog, vsyslog, P(int priority), V(int priority), (priority, format, list))
SAYS(__syslog_chk, __vsyslog_chk, P(int priority, int flag), V(int priority, int flag), (priority, flag, format, list))
SAYS(warn, vwarn, (const char *format, va_list list), (const char *format, ...), (format, list))
SAYS(warnx, vwarnx, (const char *format, va_list list), (const char *format, ...), (format, list))

/* --- scanf ----------------------------------------------------------------------------------------------------------------- */

enum { STORES, CHARACTERS, WIDE_CHARACTERS, STRINGS, WIDE_STRINGS, ALLOCATED };

/* `precision` is the field's width. */
static void read_scanf_format(struct format *format, const char *s)
{
    unsigned next = 0, size;
    format->arguments = format->conversions = 0;
    for (unsigned i = 0; i < MOST; i++)
        format->what[i] = INTEGER;
    while (*s && format->conversions < MOST) {
        if (*s++ != '%')
            continue;
        int number;
        bool skipped = false, allocated = false;
        struct conversion c = { .precision = -1, .precision_argument = -1 };
        s = numbered(s, &number);
        for (; *s == '*' || *s == '\'' || *s == 'I'; s++)
            skipped |= *s == '*';
        if (*s >= '0' && *s <= '9')
            s = decimal(s, &c.precision);
        if (*s == 'm') {
            allocated = true;
            s++;
        }
        s = modifier(s, &size);
        c.what = STORES;
        switch (*s) {
        case '\0':
            return;
        case '%':
            s++;
            continue;
        case 'a':
        case 'A':
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
            break;
        case 'p':
            size = 8;
            break;
        case 'c':
            c.what = size == 8 ? WIDE_CHARACTERS : CHARACTERS;
            break;
        case 'C':
            c.what = WIDE_CHARACTERS;
            break;
        case 's':
            c.what = size == 8 ? WIDE_STRINGS : STRINGS;
            break;
        case 'S':
            c.what = WIDE_STRINGS;
            break;
        case '[':
            c.what = size == 8 ? WIDE_STRINGS : STRINGS;
            s += s[1] == '^';
            s += s[1] == ']';
            while (s[1] && *++s != ']')
                ;
            if (*s != ']')
                return;
            break;
        default:
            break;
        }
        bool counts = *s++ != 'n';
        if (skipped)
            continue;
        if (allocated)
            c.what = ALLOCATED;
        int index = argument(format, &next, number, INTEGER);
        if (index < 0)
            return;
        c.argument = (uint8_t)index;
        c.size = (uint8_t)size;
        c.precision_argument = counts;
        format->list[format->conversions++] = c;
    }
}

static size_t wide_size(const wchar_t *text)
{
    size_t n = 0;
    while (text[n])
        n++;
    return (n + 1) * sizeof *text;
}

/* Invariant 3. A %n behind the last conversion that was made may have been reached or not: it is left out. */
static void scanned(const struct rf_scope *scope, const char *text, va_list arguments, int result)
{
    struct format format;
    uintptr_t values[MOST];
    va_list list;
    rf_libc_access(scope, text, rf_length(text) + 1, 0);
    read_scanf_format(&format, text);
    va_copy(list, arguments);
    fetch(&format, list, values);
    va_end(list);
    for (unsigned i = 0; i < format.conversions && result > 0; i++) {
        const struct conversion *c = &format.list[i];
        void *to = (void *)values[c->argument];
        size_t width = c->precision > 0 ? (size_t)c->precision : 1;
        result -= c->precision_argument;
        switch (c->what) {
        case STORES:
            rf_libc_access(scope, to, c->size, RF_A_WRITE);
            break;
        case CHARACTERS:
            rf_libc_access(scope, to, width, RF_A_WRITE);
            break;
        case WIDE_CHARACTERS:
            rf_libc_access(scope, to, width * sizeof(wchar_t), RF_A_WRITE);
            break;
        case STRINGS:
            rf_libc_access(scope, to, rf_length(to) + 1, RF_A_WRITE);
            break;
        case WIDE_STRINGS:
            rf_libc_access(scope, to, wide_size(to), RF_A_WRITE);
            break;
        default:
            rf_libc_access(scope, to, sizeof(void *), RF_A_WRITE);
            break;
        }
    }
}

#define SCAN_BODY(name, vname, arguments, before, after)      \
    struct rf_scope scope = RF_ENTER(name);                   \
    if (scope.self) {                                         \
        rf_signal_unsafe(#name, scope.pc);                    \
        before;                                               \
    }                                                         \
    va_list again;                                            \
    va_copy(again, list);                                     \
    int result = RF_REAL(vname) arguments;                    \
    if (scope.self) {                                         \
        after;                                                \
        scanned(&scope, format, again, result);               \
        rf_leave(&scope);                                     \
    }                                                         \
    va_end(again);

#define SCANS(name, vname, parameters, variable, arguments, before, after) \
    RF_INTERCEPT(int, vname, parameters)                                   \
    {                                                                      \
        SCAN_BODY(vname, vname, arguments, before, after)                  \
        return result;                                                     \
    }                                                                      \
    RF_INTERCEPT(int, name, variable)                                      \
    {                                                                      \
        va_list list;                                                      \
        va_start(list, format);                                            \
        SCAN_BODY(name, vname, arguments, before, after)                   \
        va_end(list);                                                      \
        return result;                                                     \
    }
#define USED(f) rf_access((uintptr_t)(f), 1, 0, scope.pc)
#define CAME(f) rf_fd_acquires(rf_stream_fd(f))

SCANS(scanf, vscanf, (const char *format, va_list list), (const char *format, ...), (format, list), , CAME(stdin))
SCANS(__isoc99_scanf, __isoc99_vscanf, (const char *format, va_list list), (const char *format, ...), (format, list), , CAME(stdin))
SCANS(fscanf, vfscanf, P(FILE *f), V(FILE *f), (f, format, list), USED(f), CAME(f))
SCANS(__isoc99_fscanf, __isoc99_vfscanf, P(FILE *f), V(FILE *f), (f, format, list), USED(f), CAME(f))
SCANS(sscanf, vsscanf, P(const char *s), V(const char *s), (s, format, list), RS(s), )
SCANS(__isoc99_sscanf, __isoc99_vsscanf, P(const char *s), V(const char *s), (s, format, list), RS(s), )
