/* The hooks as they are called through the PLT: where a call could not be changed, or is a tail jump, or comes from code that nobody
 * scans. Plain ones do nothing unless they are called at one of the two sites; atomic ones do what they must.
 *
 * Other entry points of the runtime (annotations and their like) do nothing and return 0: guest/chase/names makes them.
 */
#include "guest/chase/chase.h"
#include "guest/hot.h"
#include "guest/intercept.h"

/* What inlined hooks look at (guest/inline/hooks.c): no access repeats another, and nobody has frames. */
static uint64_t no_word;
RF_TLS struct rf_hot rf_hot;
RF_EXPORT struct rf_plane rf_plane;
struct rf_plane rf_plane = { 0, &no_word };

static inline __attribute__((always_inline)) void called(const volatile void *addr, uintptr_t second, void *pc)
{
    if (__builtin_expect(__atomic_load_n(&rf_chase_unpatched, __ATOMIC_RELAXED), 0))
        rf_chase_plt((uintptr_t)addr, second, (uintptr_t)pc);
}

#define HERE __builtin_return_address(0)

#define PLAIN(name)                  \
    RF_EXPORT void name(void *addr); \
    void name(void *addr)            \
    {                                \
        called(addr, 0, HERE);       \
    }

#define SIZE(size)                            \
    PLAIN(__tsan_read##size)                  \
    PLAIN(__tsan_write##size)                 \
    PLAIN(__tsan_unaligned_read##size)        \
    PLAIN(__tsan_unaligned_write##size)       \
    PLAIN(__tsan_volatile_read##size)         \
    PLAIN(__tsan_volatile_write##size)        \
    PLAIN(__tsan_unaligned_volatile_read##size)  \
    PLAIN(__tsan_unaligned_volatile_write##size) \
    PLAIN(__tsan_read_write##size)            \
    PLAIN(__tsan_unaligned_read_write##size)
SIZE(1)
SIZE(2)
SIZE(4)
SIZE(8)
SIZE(16)
PLAIN(__tsan_vptr_read)

#define WITH_SECOND(name, type)                   \
    RF_EXPORT void name(void *addr, type second); \
    void name(void *addr, type second)            \
    {                                             \
        called(addr, (uintptr_t)second, HERE);    \
    }
WITH_SECOND(__tsan_read_range, size_t)
WITH_SECOND(__tsan_write_range, size_t)
WITH_SECOND(__tsan_vptr_update, void *)

/* What clang calls in the place of libc's. */
RF_EXPORT void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    static void *real;
    return ((void *(*)(void *, const void *, size_t))rf_real(&real, "memcpy"))(to, from, size);
}

RF_EXPORT void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size)
{
    static void *real;
    return ((void *(*)(void *, const void *, size_t))rf_real(&real, "memmove"))(to, from, size);
}

RF_EXPORT void *__tsan_memset(void *to, int value, size_t size);
void *__tsan_memset(void *to, int value, size_t size)
{
    static void *real;
    return ((void *(*)(void *, int, size_t))rf_real(&real, "memset"))(to, value, size);
}

/* -- atomic operations ----------------------------------------------------------------------------------------------------------- */

/* Updates are the same instruction for all orders; so are loads. A store that is not seq_cst is a plain one. */
#define SEQ_CST(order) (((order) & 7) == __ATOMIC_SEQ_CST)

#define UPDATE(bits, type, name, builtin)                                                                \
    RF_EXPORT type __tsan_atomic##bits##_##name(volatile type *addr, type value, int order);             \
    type __tsan_atomic##bits##_##name(volatile type *addr, type value, int order)                        \
    {                                                                                                    \
        (void)order;                                                                                     \
        called(addr, 0, HERE);                                                                           \
        return builtin(addr, value, __ATOMIC_SEQ_CST);                                                   \
    }

#define SWAP(bits, type, name, swap)                                                                                   \
    RF_EXPORT int __tsan_atomic##bits##_compare_exchange_##name(volatile type *addr, type *old, type value, int yes, int no); \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *addr, type *old, type value, int yes, int no)     \
    {                                                                                                                  \
        (void)yes, (void)no;                                                                                           \
        called(addr, 0, HERE);                                                                                         \
        return swap(addr, old, value);                                                                                 \
    }                                                                                                                  \

#define SWAP_VALUE(bits, type, swap)                                                                                   \
    RF_EXPORT type __tsan_atomic##bits##_compare_exchange_val(volatile type *addr, type old, type value, int yes, int no); \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *addr, type old, type value, int yes, int no)        \
    {                                                                                                                  \
        (void)yes, (void)no;                                                                                           \
        called(addr, 0, HERE);                                                                                         \
        swap(addr, &old, value);                                                                                       \
        return old;                                                                                                    \
    }

#define ATOMIC(bits, type)                                                                                             \
    RF_EXPORT type __tsan_atomic##bits##_load(const volatile type *addr, int order);                                   \
    type __tsan_atomic##bits##_load(const volatile type *addr, int order)                                              \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        called(addr, 0, HERE);                                                                                         \
        return __atomic_load_n(addr, __ATOMIC_SEQ_CST);                                                                \
    }                                                                                                                  \
    RF_EXPORT void __tsan_atomic##bits##_store(volatile type *addr, type value, int order);                            \
    void __tsan_atomic##bits##_store(volatile type *addr, type value, int order)                                       \
    {                                                                                                                  \
        called(addr, 0, HERE);                                                                                         \
        if (SEQ_CST(order))                                                                                            \
            __atomic_store_n(addr, value, __ATOMIC_SEQ_CST);                                                           \
        else                                                                                                           \
            __atomic_store_n(addr, value, __ATOMIC_RELEASE);                                                           \
    }                                                                                                                  \
    static inline int swap_##bits(volatile type *addr, type *old, type value)                                          \
    {                                                                                                                  \
        return __atomic_compare_exchange_n(addr, old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                   \
    }                                                                                                                  \
    UPDATE(bits, type, exchange, __atomic_exchange_n)                                                                  \
    UPDATE(bits, type, fetch_add, __atomic_fetch_add)                                                                  \
    UPDATE(bits, type, fetch_sub, __atomic_fetch_sub)                                                                  \
    UPDATE(bits, type, fetch_and, __atomic_fetch_and)                                                                  \
    UPDATE(bits, type, fetch_or, __atomic_fetch_or)                                                                    \
    UPDATE(bits, type, fetch_xor, __atomic_fetch_xor)                                                                  \
    UPDATE(bits, type, fetch_nand, __atomic_fetch_nand)                                                                \
    SWAP(bits, type, strong, swap_##bits)                                                                              \
    SWAP(bits, type, weak, swap_##bits)                                                                                \
    SWAP_VALUE(bits, type, swap_##bits)

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

/* 16 bytes: the builtins would call libatomic. */
typedef unsigned __int128 wide;

static inline int swap_128(volatile wide *addr, wide *old, wide value)
{
    uint64_t low = (uint64_t)*old, high = (uint64_t)(*old >> 64);
    bool done;
    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(done), "+m"(*addr), "+a"(low), "+d"(high)
                         : "b"((uint64_t)value), "c"((uint64_t)(value >> 64))
                         : "memory");
    *old = (wide)high << 64 | low;
    return done;
}

RF_EXPORT wide __tsan_atomic128_load(const volatile wide *addr, int order);
wide __tsan_atomic128_load(const volatile wide *addr, int order)
{
    wide value = 0;
    (void)order;
    called(addr, 0, HERE);
    swap_128((volatile wide *)addr, &value, 0);
    return value;
}

#define WIDE(name, result)                                                                       \
    RF_EXPORT wide __tsan_atomic128_##name(volatile wide *addr, wide value, int order);          \
    wide __tsan_atomic128_##name(volatile wide *addr, wide value, int order)                     \
    {                                                                                            \
        wide old = 0;                                                                            \
        (void)order;                                                                             \
        called(addr, 0, HERE);                                                                   \
        while (!swap_128(addr, &old, (result)))                                                  \
            ;                                                                                    \
        return old;                                                                              \
    }
WIDE(exchange, value)
WIDE(fetch_add, old + value)
WIDE(fetch_sub, old - value)
WIDE(fetch_and, old & value)
WIDE(fetch_or, old | value)
WIDE(fetch_xor, old ^ value)
WIDE(fetch_nand, ~(old & value))
SWAP(128, wide, strong, swap_128)
SWAP(128, wide, weak, swap_128)
SWAP_VALUE(128, wide, swap_128)

RF_EXPORT void __tsan_atomic128_store(volatile wide *addr, wide value, int order);
void __tsan_atomic128_store(volatile wide *addr, wide value, int order)
{
    wide old = 0;
    (void)order;
    called(addr, 0, HERE);
    while (!swap_128(addr, &old, value))
        ;
}

RF_EXPORT void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    if (SEQ_CST(order))
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_thread_fence(__ATOMIC_ACQ_REL);
}

RF_EXPORT void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The one entry point that returns neither nothing nor a number in a general register. */
RF_EXPORT double ValgrindSlowdown(void);
double ValgrindSlowdown(void)
{
    return 1;
}
