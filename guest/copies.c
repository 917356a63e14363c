/* Memory and strings: the functions that compilers call by themselves, and their neighbours, which are called most.
 *
 * 1. A short range whose words all say "this epoch, whole granule" was looked at already: nothing is pushed, nothing is called but
 *    the real function. So a memcpy of a few words costs a few compares more than libc's.
 * 2. They may be called before libc's own are known (ifunc resolvers, the loader): then a plain loop does the job.
 * 3. A string function has read what it had to read: up to the end or the difference, not more. So memcmp and strncmp that differ
 *    in the first byte have read one byte of each.
 * 4. This file's objects are not renamed: nothing in it may make the compiler call memcpy and its like.
 */
#include "guest/caper.h"
#include "guest/escape.h"
#include "guest/libc.h"
#include "guest/planes.h"

#include <wchar.h>

#define FRESH_MOST 128u /* longer ranges pay for the call anyhow */

/* Invariant 1. The thread's own epoch cannot change under us: it is this thread that would change it. A signal handler in between
 * may begin another one; then what was compared is one epoch old, and the access counts as made before the handler. */
static inline __attribute__((always_inline)) bool fresh(uintptr_t addr, size_t size, bool write)
{
    uint64_t base = rf_hot.base, span = rf_hot.span;
    if (!span || size - 1 >= FRESH_MOST)
        return !size;
    const uint64_t *word = rf_word(addr), *last = rf_word(addr + size - 1);
    for (; word <= last; word++) {
        uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);
        if ((now >> 28) - base >= span || (write && !(now >> 27 & 1)))
            return false;
    }
    return true;
}

/* Invariant 2. `rep` is no call. */
static void plain_forward(void *to, const void *from, size_t size)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static void plain_move(void *to, const void *from, size_t size)
{
    if ((uintptr_t)to - (uintptr_t)from >= size) {
        plain_forward(to, from, size);
        return;
    }
    char *t = (char *)to + size - 1;
    const char *f = (const char *)from + size - 1;
    __asm__ volatile("std\n\trep movsb\n\tcld" : "+D"(t), "+S"(f), "+c"(size) : : "memory");
}

static void plain_fill(void *to, int value, size_t size)
{
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
}

static size_t plain_same(const unsigned char *a, const unsigned char *b, size_t size)
{
    size_t n = 0;
    while (n < size && a[n] == b[n])
        n++;
    return n;
}

/* The real function, or NULL before the start: looking it up may need what does not work yet. */
#define REAL_OR_NULL(name) (__builtin_expect(rf_real_##name != NULL || rf_started, 1) ? RF_REAL(name) : (rf_fn_##name *)NULL)

static inline __attribute__((always_inline)) void *do_copy(void *to, const void *from, size_t size, void **place, const char *name)
{
    void *(*real)(void *, const void *, size_t) =
        *place || rf_started ? (void *(*)(void *, const void *, size_t))rf_real(place, name) : NULL;
    if (__builtin_expect(real != NULL, 1))
        return real(to, from, size);
    plain_move(to, from, size);
    return to;
}

/* The long way is apart, so that the quick one needs no frame. `cfa` is the caller's stack pointer. */
static __attribute__((noinline)) void look(uintptr_t pc, uintptr_t caller, char *cfa, const void *from, size_t read, const void *to,
                                           size_t written)
{
    if (rf_caper_on && rf_hot.own && (!read || rf_escape_is_own((uintptr_t)from, read)) &&
        (!written || rf_escape_is_own((uintptr_t)to, written)))
        return; /* there is nothing to find out, and nothing was stored that is still to be looked at */
    struct rf_scope scope = rf_enter(pc, caller, cfa - 2 * sizeof(void *));
    if (!scope.self)
        return;
    R(from, read);
    W(to, written);
    rf_leave(&scope);
}

#define LOOK(name, from, read, to, written)                                                                                  \
    look((uintptr_t)&rf_icpt_##name, (uintptr_t)__builtin_return_address(0), __builtin_dwarf_cfa(), from, read, to, written)

#define CHECK_COPY(name, to, from, size)                                                                     \
    if (__builtin_expect(!fresh((uintptr_t)(from), size, false) || !fresh((uintptr_t)(to), size, true), 0)) \
        LOOK(name, from, size, to, size);

#define CHECK_FILL(name, to, size)                                \
    if (__builtin_expect(!fresh((uintptr_t)(to), size, true), 0)) \
        LOOK(name, NULL, 0, to, size);

#define CHECK_READ(name, from, size)                                 \
    if (__builtin_expect(!fresh((uintptr_t)(from), size, false), 0)) \
        LOOK(name, from, size, NULL, 0);

RF_INTERCEPT(void *, memcpy, (void *to, const void *from, size_t size))
{
    CHECK_COPY(memcpy, to, from, size)
    return do_copy(to, from, size, &rf_real_memcpy, "memcpy");
}

RF_INTERCEPT(void *, memmove, (void *to, const void *from, size_t size))
{
    CHECK_COPY(memmove, to, from, size)
    return do_copy(to, from, size, &rf_real_memmove, "memmove");
}

RF_INTERCEPT(void *, memset, (void *to, int value, size_t size))
{
    CHECK_FILL(memset, to, size)
    rf_fn_memset *real = REAL_OR_NULL(memset);
    if (__builtin_expect(real != NULL, 1))
        return real(to, value, size);
    plain_fill(to, value, size);
    return to;
}

/* Newer clang calls these for intrinsics; a report shows them by the name that the programmer wrote. */
RF_EXPORT void *__tsan_memcpy(void *to, const void *from, size_t size);
RF_EXPORT void *__tsan_memmove(void *to, const void *from, size_t size);
RF_EXPORT void *__tsan_memset(void *to, int value, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    CHECK_COPY(memcpy, to, from, size)
    return do_copy(to, from, size, &rf_real_memcpy, "memcpy");
}
void *__tsan_memmove(void *to, const void *from, size_t size)
{
    CHECK_COPY(memmove, to, from, size)
    return do_copy(to, from, size, &rf_real_memmove, "memmove");
}
void *__tsan_memset(void *to, int value, size_t size)
{
    CHECK_FILL(memset, to, size)
    rf_fn_memset *real = REAL_OR_NULL(memset);
    if (__builtin_expect(real != NULL, 1))
        return real(to, value, size);
    plain_fill(to, value, size);
    return to;
}

/* Fortified ones: libc's own ends the program if the room is too small, so it is called then. */
#define FORTIFIED_COPY(name)                                                             \
    RF_INTERCEPT(void *, __##name##_chk, (void *to, const void *from, size_t size, size_t room)) \
    {                                                                                    \
        if (size > room)                                                                 \
            return RF_REAL(__##name##_chk)(to, from, size, room);                        \
        CHECK_COPY(name, to, from, size)                                                 \
        return do_copy(to, from, size, &rf_real_##name, #name);                          \
    }
FORTIFIED_COPY(memcpy)
FORTIFIED_COPY(memmove)

RF_INTERCEPT(void *, __memset_chk, (void *to, int value, size_t size, size_t room))
{
    if (size > room)
        return RF_REAL(__memset_chk)(to, value, size, room);
    CHECK_FILL(memset, to, size)
    rf_fn_memset *real = REAL_OR_NULL(memset);
    return real ? real(to, value, size) : (plain_fill(to, value, size), to);
}

RF_INTERCEPT(void *, mempcpy, (void *to, const void *from, size_t size))
{
    CHECK_COPY(mempcpy, to, from, size)
    do_copy(to, from, size, &rf_real_memcpy, "memcpy");
    return (char *)to + size;
}
RF_INTERCEPT(void *, __mempcpy, (void *to, const void *from, size_t size))
{
    CHECK_COPY(mempcpy, to, from, size)
    do_copy(to, from, size, &rf_real_memcpy, "memcpy");
    return (char *)to + size;
}
RF_INTERCEPT(void *, __mempcpy_chk, (void *to, const void *from, size_t size, size_t room))
{
    if (size > room)
        return RF_REAL(__mempcpy_chk)(to, from, size, room);
    CHECK_COPY(mempcpy, to, from, size)
    do_copy(to, from, size, &rf_real_memcpy, "memcpy");
    return (char *)to + size;
}

RF_INTERCEPT(void, bcopy, (const void *from, void *to, size_t size))
{
    CHECK_COPY(bcopy, to, from, size)
    do_copy(to, from, size, &rf_real_memmove, "memmove");
}

RF_INTERCEPT(void, bzero, (void *to, size_t size))
{
    CHECK_FILL(bzero, to, size)
    rf_fn_memset *real = REAL_OR_NULL(memset);
    if (real)
        real(to, 0, size);
    else
        plain_fill(to, 0, size);
}
RF_INTERCEPT(void, __bzero, (void *to, size_t size))
{
    CHECK_FILL(bzero, to, size)
    rf_fn_memset *real = REAL_OR_NULL(memset);
    if (real)
        real(to, 0, size);
    else
        plain_fill(to, 0, size);
}
RF_INTERCEPT(void, explicit_bzero, (void *to, size_t size))
{
    CHECK_FILL(explicit_bzero, to, size)
    plain_fill(to, 0, size);
}

#define COMPARE(name)                                                                          \
    RF_INTERCEPT(int, name, (const void *a, const void *b, size_t size))                       \
    {                                                                                          \
        rf_fn_##name *real = REAL_OR_NULL(name);                                               \
        int result = real ? real(a, b, size) : 0;                                              \
        if (result || !real) {                                                                 \
            size_t same = plain_same(a, b, size);                                              \
            if (!real)                                                                         \
                result = same < size ? ((const unsigned char *)a)[same] - ((const unsigned char *)b)[same] : 0; \
            size = same < size ? same + 1 : size;                                              \
        }                                                                                      \
        CHECK_READ(name, a, size)                                                              \
        CHECK_READ(name, b, size)                                                              \
        return result;                                                                         \
    }
COMPARE(memcmp)
COMPARE(bcmp)
COMPARE(__memcmpeq)

#define SEARCH(name)                                                                                   \
    RF_INTERCEPT(void *, name, (const void *from, int byte, size_t size))                              \
    {                                                                                                  \
        char *found = RF_REAL(name)(from, byte, size);                                                 \
        size_t seen = found ? (size_t)(found - (const char *)from) + 1 : size;                         \
        CHECK_READ(name, from, seen)                                                                   \
        return found;                                                                                  \
    }
SEARCH(memchr)

RF_INTERCEPT(void *, rawmemchr, (const void *from, int byte))
{
    char *found = RF_REAL(rawmemchr)(from, byte);
    CHECK_READ(rawmemchr, from, (size_t)(found - (const char *)from) + 1)
    return found;
}

RF_INTERCEPT(void *, memrchr, (const void *from, int byte, size_t size))
{
    const char *found = RF_REAL(memrchr)(from, byte, size);
    const char *first = found ? found : from;
    CHECK_READ(memrchr, first, (size_t)((const char *)from + size - first))
    return (void *)found;
}

RF_INTERCEPT(void *, memccpy, (void *to, const void *from, int byte, size_t size))
{
    const char *end = RF_REAL(memchr)(from, byte, size);
    size_t moved = end ? (size_t)(end - (const char *)from) + 1 : size;
    CHECK_COPY(memccpy, to, from, moved)
    do_copy(to, from, moved, &rf_real_memcpy, "memcpy");
    return end ? (char *)to + moved : NULL;
}

RF_INTERCEPT(void *, memmem, (const void *in, size_t size, const void *what, size_t length))
{
    char *found = RF_REAL(memmem)(in, size, what, length);
    CHECK_READ(memmem, what, length)
    CHECK_READ(memmem, in, found ? (size_t)(found - (const char *)in) + length : size)
    return found;
}

/* Strings. */

static size_t length_of(const char *text);

RF_INTERCEPT(size_t, strlen, (const char *text))
{
    size_t length = length_of(text);
    CHECK_READ(strlen, text, length + 1)
    return length;
}

static size_t length_of(const char *text)
{
    rf_fn_strlen *real = REAL_OR_NULL(strlen);
    return real ? real(text) : rf_length(text);
}

RF_INTERCEPT(size_t, strnlen, (const char *text, size_t most))
{
    size_t length = RF_REAL(strnlen)(text, most);
    CHECK_READ(strnlen, text, length < most ? length + 1 : most)
    return length;
}

#define STRING_COPY(name, real_name, result)                              \
    RF_INTERCEPT(char *, name, (char *to, const char *from))               \
    {                                                                      \
        size_t size = length_of(from) + 1;                                 \
        CHECK_COPY(real_name, to, from, size)                              \
        do_copy(to, from, size, &rf_real_memcpy, "memcpy");                \
        return result;                                                     \
    }
STRING_COPY(strcpy, strcpy, to)
STRING_COPY(stpcpy, stpcpy, to + size - 1)
STRING_COPY(__stpcpy, __stpcpy, to + size - 1)

#define STRING_COPY_CHK(name, real_name, result)                                  \
    RF_INTERCEPT(char *, name, (char *to, const char *from, size_t room))          \
    {                                                                              \
        size_t size = length_of(from) + 1;                                         \
        if (size > room)                                                           \
            return RF_REAL(name)(to, from, room);                                  \
        CHECK_COPY(real_name, to, from, size)                                      \
        do_copy(to, from, size, &rf_real_memcpy, "memcpy");                        \
        return result;                                                             \
    }
STRING_COPY_CHK(__strcpy_chk, strcpy, to)
STRING_COPY_CHK(__stpcpy_chk, stpcpy, to + size - 1)

/* All `size` bytes are written: what is left of them with zeros. */
static inline __attribute__((always_inline)) size_t copied(const char *from, size_t size)
{
    size_t length = rf_length_up_to(from, size);
    return length < size ? length + 1 : size;
}

#define STRING_COPY_N(name, real_name, parameters, arguments)       \
    RF_INTERCEPT(char *, name, parameters)                          \
    {                                                               \
        size_t read = copied(from, size);                           \
        LOOK(real_name, from, read, to, size);                      \
        return RF_REAL(name) arguments;                             \
    }
STRING_COPY_N(strncpy, strncpy, (char *to, const char *from, size_t size), (to, from, size))
STRING_COPY_N(stpncpy, stpncpy, (char *to, const char *from, size_t size), (to, from, size))
STRING_COPY_N(__strncpy_chk, strncpy, (char *to, const char *from, size_t size, size_t room), (to, from, size, room))
STRING_COPY_N(__stpncpy_chk, stpncpy, (char *to, const char *from, size_t size, size_t room), (to, from, size, room))

/* What is there is read, its old end is written over. */
#define STRING_ADD(name, real_name, parameters, arguments, added)    \
    RF_INTERCEPT(char *, name, parameters)                           \
    {                                                                \
        struct rf_scope scope = RF_ENTER(real_name);                 \
        if (scope.self) {                                            \
            size_t before = length_of(to), more = added;             \
            R(to, before);                                           \
            R(from, more + ended);                                   \
            W(to + before, more + 1);                                \
            rf_leave(&scope);                                        \
        }                                                            \
        return RF_REAL(name) arguments;                              \
    }
#define ended 1
STRING_ADD(strcat, strcat, (char *to, const char *from), (to, from), length_of(from))
STRING_ADD(__strcat_chk, strcat, (char *to, const char *from, size_t room), (to, from, room), length_of(from))
#undef ended
#define ended (more < size)
STRING_ADD(strncat, strncat, (char *to, const char *from, size_t size), (to, from, size), rf_length_up_to(from, size))
STRING_ADD(__strncat_chk, strncat, (char *to, const char *from, size_t size, size_t room), (to, from, size, room),
           rf_length_up_to(from, size))
#undef ended

/* Where two strings part, `most` at the most; `fold` makes of two letters one. */
#define STRING_COMPARE(name, parameters, arguments, most, fold)                                         \
    RF_INTERCEPT(int, name, parameters)                                                                 \
    {                                                                                                   \
        size_t n = 0;                                                                                   \
        while (n < (most) && a[n] && fold((unsigned char)a[n]) == fold((unsigned char)b[n]))            \
            n++;                                                                                        \
        n += n < (most);                                                                                \
        CHECK_READ(name, a, n)                                                                          \
        CHECK_READ(name, b, n)                                                                          \
        return RF_REAL(name) arguments;                                                                 \
    }
static inline int as_is(int c)
{
    return c;
}
/* Letters of other alphabets in one-byte locales count as different from here on: less is checked, never too much. */
static inline int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c;
}
STRING_COMPARE(strcmp, (const char *a, const char *b), (a, b), SIZE_MAX, as_is)
STRING_COMPARE(strncmp, (const char *a, const char *b, size_t size), (a, b, size), size, as_is)
STRING_COMPARE(strcasecmp, (const char *a, const char *b), (a, b), SIZE_MAX, lower)
STRING_COMPARE(strncasecmp, (const char *a, const char *b, size_t size), (a, b, size), size, lower)

#define STRING_SEARCH(name)                                                                                  \
    RF_INTERCEPT(char *, name, (const char *text, int c))                                                    \
    {                                                                                                        \
        char *found = RF_REAL(name)(text, c);                                                                \
        CHECK_READ(name, text, found ? (size_t)(found - text) + 1 : length_of(text) + 1)                     \
        return found;                                                                                        \
    }
STRING_SEARCH(strchr)
STRING_SEARCH(strchrnul)
STRING_SEARCH(index)

#define STRING_SEARCH_LAST(name)                                  \
    RF_INTERCEPT(char *, name, (const char *text, int c))         \
    {                                                             \
        CHECK_READ(name, text, length_of(text) + 1)               \
        return RF_REAL(name)(text, c);                            \
    }
STRING_SEARCH_LAST(strrchr)
STRING_SEARCH_LAST(rindex)

/* Wide characters. */
#define WIDE_COPY(name)                                                                     \
    RF_INTERCEPT(wchar_t *, w##name, (wchar_t *to, const wchar_t *from, size_t count))       \
    {                                                                                       \
        size_t size = count * sizeof *to;                                                   \
        CHECK_COPY(w##name, to, from, size)                                                 \
        return RF_REAL(w##name)(to, from, count);                                           \
    }
WIDE_COPY(memcpy)
WIDE_COPY(memmove)
WIDE_COPY(mempcpy)

RF_INTERCEPT(wchar_t *, wmemset, (wchar_t *to, wchar_t value, size_t count))
{
    CHECK_FILL(wmemset, to, count * sizeof *to)
    return RF_REAL(wmemset)(to, value, count);
}
