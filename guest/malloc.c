/* The doors of the heap: what C and C++ programs call. None of them has a real function behind it.
 *
 * 1. Failure is as in glibc: NULL and errno ENOMEM; an alignment that is none is EINVAL; sizes that overflow are failures.
 * 2. operator new that fails calls the program's new handler, as the standard says; if there is none, libstdc++'s own operator new
 *    is asked for a size that cannot be: it throws std::bad_alloc, which we, being C, cannot.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "guest/heap.h"
#include "guest/intercept.h"
#include "guest/origins.h"
#include "guest/signals.h"
#include "guest/system.h"

#define RF_PAGE_SIZE ((size_t)4096)

/* As RF_INTERCEPT, without a real function. */
#define RF_DOOR(type, name, parameters)                                                                                     \
    typedef type rf_fn_##name parameters;                                                                                   \
    static rf_fn_##name rf_icpt_##name __attribute__((used));                                                               \
    __asm__(".globl " #name "\n.type " #name ", @function\n.set " #name ", rf_icpt_" #name "\n" RF_AGAIN(#name));                           \
    static type rf_icpt_##name parameters

#define RF_ALIAS(name, other) __asm__(".globl " #name "\n.type " #name ", @function\n.set " #name ", rf_icpt_" #other "\n");

#define RF_ALLOCATE(name, size, align, zero)                                                                                \
    ({                                                                                                                      \
        struct rf_scope scope_ = RF_ENTER(name);                                                                            \
        rf_signal_unsafe(#name, scope_.pc);                                                                                 \
        void *block_ = rf_heap_allocate((size), (align), (zero), scope_.pc);                                                \
        if (__builtin_expect(!scope_.self, 0)) /* no thread's, so never private */                                          \
            rf_origin_escapes((uintptr_t)__builtin_return_address(0));                                                      \
        rf_leave(&scope_);                                                                                                  \
        block_;                                                                                                             \
    })

#define RF_QUICK_ALLOCATE(name, size)                                                                                       \
    ({                                                                                                                      \
        struct rf_scope scope_ = RF_ENTER(name);                                                                            \
        rf_signal_unsafe(#name, scope_.pc);                                                                                 \
        void *block_ = rf_heap_quick(scope_.self, (size), scope_.pc);                                                       \
        if (__builtin_expect(!scope_.self, 0))                                                                              \
            rf_origin_escapes((uintptr_t)__builtin_return_address(0));                                                      \
        rf_leave(&scope_);                                                                                                  \
        block_;                                                                                                             \
    })

#define RF_RELEASE(name, block)                                                                                             \
    do {                                                                                                                    \
        if (block) {                                                                                                        \
            struct rf_scope scope_ = RF_ENTER(name);                                                                        \
            rf_signal_unsafe(#name, scope_.pc);                                                                             \
            rf_heap_release(block, scope_.pc);                                                                              \
            rf_leave(&scope_);                                                                                              \
        }                                                                                                                   \
    } while (0)

static inline void *or_errno(void *block)
{
    if (__builtin_expect(!block, 0))
        errno = ENOMEM;
    return block;
}

static bool power_of_two(size_t n)
{
    return n && !(n & (n - 1));
}

RF_DOOR(void *, malloc, (size_t size))
{
    return or_errno(RF_QUICK_ALLOCATE(malloc, size));
}

RF_DOOR(void, free, (void *block))
{
    RF_RELEASE(free, block);
}

RF_DOOR(void, cfree, (void *block))
{
    RF_RELEASE(cfree, block);
}

RF_DOOR(void *, calloc, (size_t count, size_t size))
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return or_errno(NULL);
    return or_errno(RF_ALLOCATE(calloc, bytes, 0, true));
}

static inline __attribute__((always_inline)) void *resize(struct rf_scope scope, void *block, size_t size)
{
    void *result = NULL;
    rf_signal_unsafe("realloc", scope.pc);
    if (!block)
        result = or_errno(rf_heap_allocate(size, 0, false, scope.pc));
    else if (!size)
        rf_heap_release(block, scope.pc); /* glibc: freed, and NULL is no failure */
    else
        result = or_errno(rf_heap_resize(block, size, scope.pc));
    rf_leave(&scope);
    return result;
}

RF_DOOR(void *, realloc, (void *block, size_t size))
{
    return resize(RF_ENTER(realloc), block, size);
}

RF_DOOR(void *, reallocarray, (void *block, size_t count, size_t size))
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return or_errno(NULL);
    return resize(RF_ENTER(reallocarray), block, bytes);
}

/* glibc takes any alignment and makes it a power of two. 0: there is none so large. */
static size_t round_alignment(size_t align)
{
    if (align > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return 0;
    }
    return align < 16 ? 16 : (size_t)1 << (64 - __builtin_clzll(align - 1));
}

RF_DOOR(void *, memalign, (size_t align, size_t size))
{
    align = round_alignment(align);
    return align ? or_errno(RF_ALLOCATE(memalign, size, align, false)) : NULL;
}

RF_DOOR(void *, aligned_alloc, (size_t align, size_t size))
{
    align = round_alignment(align);
    return align ? or_errno(RF_ALLOCATE(aligned_alloc, size, align, false)) : NULL;
}

RF_DOOR(int, posix_memalign, (void **result, size_t align, size_t size))
{
    if (align % sizeof(void *) || !power_of_two(align))
        return EINVAL;
    void *block = RF_ALLOCATE(posix_memalign, size, align, false);
    if (!block)
        return ENOMEM;
    *result = block;
    return 0;
}

RF_DOOR(void *, valloc, (size_t size))
{
    return or_errno(RF_ALLOCATE(valloc, size, RF_PAGE_SIZE, false));
}

RF_DOOR(void *, pvalloc, (size_t size))
{
    if (size > SIZE_MAX - RF_PAGE_SIZE)
        return or_errno(NULL);
    size = (size + RF_PAGE_SIZE - 1) & ~(RF_PAGE_SIZE - 1);
    return or_errno(RF_ALLOCATE(pvalloc, size, RF_PAGE_SIZE, false));
}

RF_ALIAS(__libc_malloc, malloc)
RF_ALIAS(__libc_calloc, calloc)
RF_ALIAS(__libc_realloc, realloc)
RF_ALIAS(__libc_free, free)
RF_ALIAS(__libc_memalign, memalign)
RF_ALIAS(__libc_valloc, valloc)
RF_ALIAS(__libc_pvalloc, pvalloc)

RF_DOOR(size_t, malloc_usable_size, (void *block))
{
    return block ? rf_heap_usable(block) : 0;
}

RF_DOOR(int, mallopt, (int parameter, int value))
{
    (void)parameter, (void)value; /* advice for another allocator: taken and not needed */
    return 1;
}

RF_DOOR(int, malloc_trim, (size_t pad))
{
    (void)pad;
    return rf_heap_trim() != 0;
}

RF_DOOR(struct mallinfo2, mallinfo2, (void))
{
    size_t in_use, unused;
    rf_heap_totals(&in_use, &unused);
    return (struct mallinfo2){ .arena = in_use + unused, .uordblks = in_use, .fordblks = unused };
}

RF_DOOR(struct mallinfo, mallinfo, (void))
{
    size_t in_use, unused;
    rf_heap_totals(&in_use, &unused);
    return (struct mallinfo){ .arena = (int)(in_use + unused), .uordblks = (int)in_use, .fordblks = (int)unused };
}

RF_DOOR(void, malloc_stats, (void))
{
    size_t in_use, unused;
    rf_heap_totals(&in_use, &unused);
    rf_say("heap: %zu bytes in use, %zu bytes free and not given back", in_use, unused);
}

RF_DOOR(int, malloc_info, (int options, FILE *file))
{
    if (options) {
        errno = EINVAL;
        return -1;
    }
    char text[256];
    size_t in_use, unused;
    rf_heap_totals(&in_use, &unused);
    rf_format(text, sizeof text,
              "<malloc version=\"1\">\n<total type=\"rest\" count=\"1\" size=\"%zu\"/>\n"
              "<system type=\"current\" size=\"%zu\"/>\n</malloc>\n",
              unused, in_use + unused);
    int (*put)(const char *, FILE *) = (int (*)(const char *, FILE *))rf_find_real("fputs");
    return put(text, file) < 0 ? -1 : 0;
}

/* C++. An alignment of 0 is malloc's. */
static void (*new_handler(void))(void)
{
    void (*(*get)(void))(void) = (void (*(*)(void))(void))dlsym(RTLD_DEFAULT, "_ZSt15get_new_handlerv");
    return get ? get() : NULL;
}

static bool handle_failure(void)
{
    void (*handler)(void) = new_handler();
    if (handler)
        handler();
    return handler;
}

static __attribute__((noinline)) void *throw_bad_alloc(size_t size)
{
    void *(*new)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "_Znwm");
    if (!new)
        rf_die("operator new: no memory for %zu bytes, and no C++ library to throw std::bad_alloc", size);
    return new (SIZE_MAX / 2 + 1); /* its malloc is ours: it fails */
}

#define RF_NEW(name, parameters, size, allocate)                                                                            \
    RF_DOOR(void *, name, parameters)                                                                                       \
    {                                                                                                                       \
        for (;;) {                                                                                                          \
            void *block = allocate;                                                                                         \
            if (__builtin_expect(block != NULL, 1))                                                                         \
                return block;                                                                                               \
            if (!handle_failure())                                                                                          \
                return throw_bad_alloc(size);                                                                               \
        }                                                                                                                   \
    }

/* The handler may throw, which would have to end here: only libstdc++ can, so it is asked if there is a handler at all. It calls the
 * throwing operator, ours, and catches. */
static void *fail_nothrow(const char *name, size_t size, size_t align, const void *tag)
{
    void *real = new_handler() ? dlsym(RTLD_NEXT, name) : NULL;
    if (!real)
        return NULL;
    return align ? ((void *(*)(size_t, size_t, const void *))real)(size, align, tag)
                 : ((void *(*)(size_t, const void *))real)(size, tag);
}

#define RF_NEW_NOTHROW(name, parameters, size, align)                                                                       \
    RF_DOOR(void *, name, parameters)                                                                                       \
    {                                                                                                                       \
        void *block = RF_ALLOCATE(name, size, align, false);                                                                \
        return block ? block : fail_nothrow(#name, size, align, tag);                                                       \
    }

RF_NEW(_Znwm, (size_t size), size, RF_QUICK_ALLOCATE(_Znwm, size))
RF_NEW(_Znam, (size_t size), size, RF_QUICK_ALLOCATE(_Znam, size))
RF_NEW(_ZnwmSt11align_val_t, (size_t size, size_t align), size, RF_ALLOCATE(_ZnwmSt11align_val_t, size, align, false))
RF_NEW(_ZnamSt11align_val_t, (size_t size, size_t align), size, RF_ALLOCATE(_ZnamSt11align_val_t, size, align, false))
RF_NEW_NOTHROW(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), size, 0)
RF_NEW_NOTHROW(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), size, 0)
RF_NEW_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, const void *tag), size, align)
RF_NEW_NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, const void *tag), size, align)

/* What sized and aligned operators are told besides, the block knows. */
#define RF_DELETE(name, ...)                                                                                                \
    RF_DOOR(void, name, (void *block, ##__VA_ARGS__))                                                                       \
    {                                                                                                                       \
        RF_RELEASE(name, block);                                                                                            \
    }
#define RF_UNUSED __attribute__((unused))

RF_DELETE(_ZdlPv)
RF_DELETE(_ZdaPv)
RF_DELETE(_ZdlPvm, size_t size RF_UNUSED)
RF_DELETE(_ZdaPvm, size_t size RF_UNUSED)
RF_DELETE(_ZdlPvRKSt9nothrow_t, const void *tag RF_UNUSED)
RF_DELETE(_ZdaPvRKSt9nothrow_t, const void *tag RF_UNUSED)
RF_DELETE(_ZdlPvSt11align_val_t, size_t align RF_UNUSED)
RF_DELETE(_ZdaPvSt11align_val_t, size_t align RF_UNUSED)
RF_DELETE(_ZdlPvmSt11align_val_t, size_t size RF_UNUSED, size_t align RF_UNUSED)
RF_DELETE(_ZdaPvmSt11align_val_t, size_t size RF_UNUSED, size_t align RF_UNUSED)
RF_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, size_t align RF_UNUSED, const void *tag RF_UNUSED)
RF_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, size_t align RF_UNUSED, const void *tag RF_UNUSED)
