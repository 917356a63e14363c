/* The first look of the hot hooks, for clang to inline: the same check as in guest/hooks.S, compiled to bitcode, which inline/main.c puts
 * into the bitcode of a program (redflag cc --inline).
 *
 * 1. An access that repeats one of the present epoch (guest/hot.h, 3) costs no call. All others call a cold hook (guest/hooks.S), which
 *    gives back every register, so that the code around it need not save any.
 * 2. The plane is a constant to the compiler, which may load it once in a function. It changes when the guest starts: a function that
 *    runs then goes on with the word of zeros, which repeats nothing, and calls.
 * 3. A cold call is not merged with another: its return address tells the line of the access.
 * 4. Nothing here is kept as a function: what is not inlined calls the runtime's hook of that name.
 */
#include <stdbool.h>

#include "guest/hot.h"

#define INLINED __attribute__((always_inline))
#define RARELY(condition) __builtin_expect_with_probability(condition, 0, 1.0)

extern const struct rf_plane rf_plane;

static inline INLINED uint64_t word_of(uintptr_t addr)
{
    return *(const uint64_t *)((const char *)rf_plane.words + (addr & rf_plane.mask));
}

/* By the first byte in its granule: what makes of a word one that says of all bytes what it says of those that are accessed. What leaves
 * the granule, though its type says that it cannot, gets a form that repeats nothing. */
#define M(size, first) ((first) + (size) > 8 ? UINT64_C(1) << 55 : UINT64_C(0xff) << 56 & ~(((UINT64_C(1) << (size)) - 1) << 56 << (first)))
#define ROW(size) { M(size, 0), M(size, 1), M(size, 2), M(size, 3), M(size, 4), M(size, 5), M(size, 6), M(size, 7) }
static const uint64_t others[5][8] = { [1] = ROW(1), [2] = ROW(2), [4] = ROW(4) };

static inline INLINED uint64_t word_for(uintptr_t addr, unsigned size)
{
    return size < 8 ? word_of(addr) | others[size][addr % 8] : word_of(addr);
}

static inline INLINED bool reads_anew(uintptr_t addr, unsigned size)
{
    return (word_for(addr, size) >> 28) - rf_hot.base >= rf_hot.span;
}

static inline INLINED bool writes_anew(uintptr_t addr, unsigned size)
{
    uint64_t distance = (word_for(addr, size) >> 27) - rf_hot.base2;
    return (distance >> 1 | distance << 63) >= rf_hot.span;
}

/* The types are those that clang gives to hooks. */
#define HOOK(name, anew)                                                           \
    __attribute__((preserve_all, nothrow)) void __tsan_cold_##name(void *at);      \
    INLINED void __tsan_##name(void *at);                                          \
    INLINED void __tsan_##name(void *at)                                           \
    {                                                                              \
        uintptr_t addr = (uintptr_t)at;                                            \
        if (RARELY(anew)) {                                                        \
            __attribute__((nomerge)) __tsan_cold_##name(at);                       \
        }                                                                          \
    }
#define READ(name, size) HOOK(name, reads_anew(addr, size))
#define WRITE(name, size) HOOK(name, writes_anew(addr, size))
/* Two granules, or one that an unaligned access may leave at its end. */
#define READ_WIDE(name, size) HOOK(name, reads_anew(addr, 8) || reads_anew(addr + (size) - 1, 8))
#define WRITE_WIDE(name, size) HOOK(name, writes_anew(addr, 8) || writes_anew(addr + (size) - 1, 8))

READ(read1, 1)
READ(read2, 2)
READ(read4, 4)
READ(read8, 8)
READ(vptr_read, 8)
WRITE(write1, 1)
WRITE(write2, 2)
WRITE(write4, 4)
WRITE(write8, 8)
READ_WIDE(read16, 16)
READ_WIDE(unaligned_read2, 2)
READ_WIDE(unaligned_read4, 4)
READ_WIDE(unaligned_read8, 8)
WRITE_WIDE(write16, 16)
WRITE_WIDE(unaligned_write2, 2)
WRITE_WIDE(unaligned_write4, 4)
WRITE_WIDE(unaligned_write8, 8)

/* Before each prefetch of the program's: its history is going to be looked at, too. */
INLINED void rf_inline_prefetch(void *at);
INLINED void rf_inline_prefetch(void *at)
{
    __builtin_prefetch((const char *)rf_plane.words + ((uintptr_t)at & rf_plane.mask));
}

/* A thread that the guest does not know yet has no stack of frames. */
INLINED void __tsan_func_entry(void *pc);
INLINED void __tsan_func_entry(void *pc)
{
    struct rf_frame *top = rf_hot.top;
    if (__builtin_expect(top != NULL, 1)) {
        uintptr_t sp;
        __asm__ volatile("lea -8(%%rsp), %0" : "=r"(sp)); /* as in a function that was called here: guest/jumps.c, 1 */
        *top = (struct rf_frame){ (uintptr_t)pc, 0, (uint32_t)sp };
        __atomic_store_n(&rf_hot.top, top + 1, __ATOMIC_RELEASE); /* a signal handler finds no frame that is not filled yet */
    }
}

INLINED void __tsan_func_exit(void);
INLINED void __tsan_func_exit(void)
{
    struct rf_frame *top = rf_hot.top;
    if (__builtin_expect(top != NULL, 1))
        rf_hot.top = top - 1;
}
