/* The plain hooks that are not hot: ranges, odd sizes, vtable pointers, and those that are given their pc. */
#include "guest/access.h"
#include "guest/escape.h"
#include "guest/intercept.h"
#include "guest/planes.h"
#include "guest/shared.h"

#define HERE ((uintptr_t)__builtin_return_address(0))

#define HOOK(name, size, flags)            \
    RF_EXPORT void name(void *addr);       \
    void name(void *addr)                  \
    {                                      \
        rf_access((uintptr_t)addr, size, flags, HERE); \
        rf_escape_stores((uintptr_t)addr, size, flags); \
    }

#define HOOK_PC(name, size, flags)                     \
    RF_EXPORT void name(void *addr, void *pc);         \
    void name(void *addr, void *pc)                    \
    {                                                  \
        rf_access((uintptr_t)addr, size, flags, (uintptr_t)pc); \
        rf_escape_stores((uintptr_t)addr, size, flags); \
    }

#define SIZES(HOOKS) HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)

#define WITH_PC(size)                                       \
    HOOK_PC(__tsan_read##size##_pc, size, 0)                \
    HOOK_PC(__tsan_write##size##_pc, size, RF_A_WRITE)
SIZES(WITH_PC)

#define UNALIGNED(size)                                                               \
    HOOK(__tsan_unaligned_volatile_read##size, size, RF_A_VOLATILE)                   \
    HOOK(__tsan_unaligned_volatile_write##size, size, RF_A_VOLATILE | RF_A_WRITE)     \
    HOOK(__tsan_unaligned_read_write##size, size, RF_A_WRITE)
SIZES(UNALIGNED)

HOOK(__tsan_unaligned_read1, 1, 0)
HOOK(__tsan_unaligned_write1, 1, RF_A_WRITE)
HOOK(__tsan_volatile_read16, 16, RF_A_VOLATILE)
HOOK(__tsan_volatile_write16, 16, RF_A_VOLATILE | RF_A_WRITE)
HOOK(__tsan_read_write16, 16, RF_A_WRITE)

/* A word says that all of its granule was accessed in this epoch (guest/hot.h, 3). */
static inline bool is_hot(const uint64_t *word)
{
    return (__atomic_load_n(word, __ATOMIC_RELAXED) >> 28) - rf_hot.base < rf_hot.span;
}

#define RANGE_OF_FEW 512u /* bytes: a row of pixels, a struct. What is longer has long runs of equal words (step_all()) */

/* gcc takes this hook for every access that may be unaligned, so most ranges are a word or two long. */
static inline void range(uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    uintptr_t end = addr + size;
    if (size <= 2 * RF_GRANULE) {
        const uint64_t *first = rf_word_anytime(addr), *last = rf_word_anytime(end - 1);
        if (!(flags & RF_A_WRITE) && is_hot(first) && is_hot(last) && is_hot(first + (last - first) / 2)) /* one to three of them */
            return;
    }
    if (size < RANGE_OF_FEW && (addr = rf_skip_repeated(addr, end, flags)) == end)
        return;
    size = end - addr;
    if (addr % RF_GRANULE + size <= 2 * RF_GRANULE)
        rf_slow_access(addr, pc, (unsigned)size, flags);
    else
        rf_access(addr, size, flags, pc);
}

RF_EXPORT void __tsan_read_range(void *addr, size_t size);
void __tsan_read_range(void *addr, size_t size)
{
    range((uintptr_t)addr, size, 0, HERE);
}

RF_EXPORT void __tsan_write_range(void *addr, size_t size);
void __tsan_write_range(void *addr, size_t size)
{
    range((uintptr_t)addr, size, RF_A_WRITE, HERE);
    rf_escape_stores((uintptr_t)addr, size, RF_A_WRITE);
}

/* Of vectors, which clang takes for unaligned more often than not. */
RF_EXPORT void __tsan_unaligned_read16(void *addr);
void __tsan_unaligned_read16(void *addr)
{
    range((uintptr_t)addr, 16, 0, HERE);
}

RF_EXPORT void __tsan_unaligned_write16(void *addr);
void __tsan_unaligned_write16(void *addr)
{
    range((uintptr_t)addr, 16, RF_A_WRITE, HERE);
    rf_escape_stores((uintptr_t)addr, 16, RF_A_WRITE);
}

/* A relocation with a hook's name would make this library look like one whose text has calls of hooks, to be searched at every start. */
extern __typeof__(__tsan_read_range) rf_hook_read_range RF_OURS __attribute__((alias("__tsan_read_range")));
extern __typeof__(__tsan_write_range) rf_hook_write_range RF_OURS __attribute__((alias("__tsan_write_range")));

RF_EXPORT void __tsan_read_range_pc(void *addr, size_t size, void *pc);
void __tsan_read_range_pc(void *addr, size_t size, void *pc)
{
    rf_access((uintptr_t)addr, size, 0, (uintptr_t)pc);
}

RF_EXPORT void __tsan_write_range_pc(void *addr, size_t size, void *pc);
void __tsan_write_range_pc(void *addr, size_t size, void *pc)
{
    rf_access((uintptr_t)addr, size, RF_A_WRITE, (uintptr_t)pc);
    rf_escape_stores((uintptr_t)addr, size, RF_A_WRITE);
}

/* A constructor or destructor sets the vtable pointer. One that sets what is there already changes nothing that another thread
 * could see: destructors of classes without a derived one do that all the time. */
RF_EXPORT void __tsan_vptr_update(void **vptr, void *value);
void __tsan_vptr_update(void **vptr, void *value)
{
    if (*vptr != value)
        rf_access((uintptr_t)vptr, sizeof *vptr, RF_A_WRITE | RF_A_VPTR, HERE);
}

RF_EXPORT void __tsan_flush_memory(void);
void __tsan_flush_memory(void)
{
}
