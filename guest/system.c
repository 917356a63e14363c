/* Raw system calls, lines of text, and the few functions that compilers call by themselves. */
#include "guest/system.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>

long rf_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

void rf_yield(void)
{
    rf_syscall(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

void rf_futex_wait(uint32_t *word, uint32_t value)
{
    RF_SYSCALL(SYS_futex, word, FUTEX_WAIT_PRIVATE, value);
}

void rf_futex_wake(uint32_t *word)
{
    RF_SYSCALL(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

struct text {
    char *at, *end;
    size_t length; /* as if there were room for all of it */
};

static void put(struct text *text, char c)
{
    text->length++;
    if (text->at < text->end)
        *text->at++ = c;
}

static void put_number(struct text *text, unsigned long long value, unsigned base, bool negative, unsigned width, char fill)
{
    char digits[24];
    unsigned count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    unsigned used = count + negative;
    if (negative && fill == '0')
        put(text, '-');
    for (; used < width; used++)
        put(text, fill);
    if (negative && fill != '0')
        put(text, '-');
    while (count)
        put(text, digits[--count]);
}

static void put_text(struct text *text, const char *s, int precision)
{
    for (s = s ? s : "(null)"; *s && precision--; s++)
        put(text, *s);
}

/* One conversion; returns where the format goes on. */
static const char *convert(struct text *text, const char *format, va_list *arguments)
{
    char fill = ' ';
    unsigned width = 0, size = 0;
    int precision = -1;
    if (*format == '0')
        fill = '0', format++;
    for (; *format >= '0' && *format <= '9'; format++)
        width = width * 10 + (unsigned)(*format - '0');
    if (*format == '.' && format[1] == '*') {
        precision = va_arg(*arguments, int);
        format += 2;
    }
    for (; *format == 'l' || *format == 'z' || *format == 'j'; format++)
        size++;
    switch (*format) {
    case 's':
        put_text(text, va_arg(*arguments, const char *), precision);
        break;
    case 'c':
        put(text, (char)va_arg(*arguments, int));
        break;
    case 'd': {
        long long value = size ? va_arg(*arguments, long) : va_arg(*arguments, int);
        put_number(text, value < 0 ? -(unsigned long long)value : (unsigned long long)value, 10, value < 0, width, fill);
        break;
    }
    case 'u':
    case 'x':
        put_number(text, size ? va_arg(*arguments, unsigned long) : va_arg(*arguments, unsigned), *format == 'u' ? 10 : 16,
                   false, width, fill);
        break;
    case 'p':
        put_text(text, "0x", -1);
        put_number(text, (unsigned long)va_arg(*arguments, void *), 16, false, width, '0');
        break;
    default:
        put(text, *format);
    }
    return format + 1;
}

static size_t format_arguments(char *buffer, size_t size, const char *format, va_list *arguments)
{
    struct text text = { buffer, buffer + (size ? size - 1 : 0), 0 };
    while (*format) {
        if (*format == '%')
            format = convert(&text, format + 1, arguments);
        else
            put(&text, *format++);
    }
    if (size)
        *text.at = 0;
    return text.length;
}

size_t rf_format(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t length = format_arguments(buffer, size, format, &arguments);
    va_end(arguments);
    return length;
}

static void say(const char *format, va_list *arguments)
{
    char line[1024] = "redflag: ";
    size_t length = 9 + format_arguments(line + 9, sizeof line - 10, format, arguments);
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    RF_SYSCALL(SYS_write, 2, line, length);
}

void rf_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, &arguments);
    va_end(arguments);
}

_Noreturn void rf_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, &arguments);
    va_end(arguments);
    for (;;)
        RF_SYSCALL(SYS_exit_group, RF_FAILURE);
}

/* What the compiler calls for copies and comparisons inside the guest (the build renames its calls to these). */
void *rf_internal_memcpy(void *to, const void *from, size_t size);
void *rf_internal_memmove(void *to, const void *from, size_t size);
void *rf_internal_memset(void *to, int value, size_t size);
int rf_internal_memcmp(const void *a, const void *b, size_t size);
size_t rf_internal_strlen(const char *s);

/* Most are a few words long: the string instructions take longer to begin than such a copy lasts. */
typedef uint64_t __attribute__((may_alias, aligned(1))) any_word;

void *rf_internal_memcpy(void *to, const void *from, size_t size)
{
    char *a = to;
    const char *b = from;
    if (size > 256) {
        __asm__ volatile("rep movsb" : "+D"(a), "+S"(b), "+c"(size) : : "memory");
        return to;
    }
    for (; size >= sizeof(any_word); size -= sizeof(any_word), a += sizeof(any_word), b += sizeof(any_word))
        *(volatile any_word *)(void *)a = *(const volatile any_word *)(const void *)b;
    for (; size; size--)
        *(volatile char *)a++ = *b++;
    return to;
}

void *rf_internal_memmove(void *to, const void *from, size_t size)
{
    if ((uintptr_t)to - (uintptr_t)from >= size)
        return rf_internal_memcpy(to, from, size);
    volatile char *a = to;
    const volatile char *b = from;
    while (size--)
        a[size] = b[size];
    return to;
}

void *rf_internal_memset(void *to, int value, size_t size)
{
    char *a = to;
    if (size > 256) {
        __asm__ volatile("rep stosb" : "+D"(a), "+c"(size) : "a"(value) : "memory");
        return to;
    }
    uint64_t pattern = (unsigned char)value * UINT64_C(0x0101010101010101);
    for (; size >= sizeof(any_word); size -= sizeof(any_word), a += sizeof(any_word))
        *(volatile any_word *)(void *)a = pattern;
    for (; size; size--)
        *(volatile char *)a++ = (char)value;
    return to;
}

int rf_internal_memcmp(const void *a, const void *b, size_t size)
{
    const volatile unsigned char *x = a, *y = b;
    for (size_t i = 0; i < size; i++)
        if (x[i] != y[i])
            return x[i] - y[i];
    return 0;
}

size_t rf_internal_strlen(const char *s)
{
    size_t length = 0;
    for (const volatile char *c = s; *c; c++)
        length++;
    return length;
}
