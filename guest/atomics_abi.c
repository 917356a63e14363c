/* The entry points of atomic operations: __tsan_atomic{8,16,32,64,128}_*, as gcc and clang call them.
 *
 * 1. Every operation is one text for all sizes. The operation on the value is always seq_cst: what the program asked for is what
 *    counts for happens-before, and the processor may do more.
 * 2. guest/atomics.c says why a value is read before its object is looked for, and when the check of the access comes.
 * 3. weak compare-exchange never fails spuriously, which it need not.
 */
#include "guest/atomics.h"
#include "guest/escape.h"
#include "guest/intercept.h"

#define PC ((uintptr_t)__builtin_return_address(0))
#define INLINE static inline __attribute__((always_inline))

/* *addr == *old: *addr := value. Otherwise *old := *addr. */
#define CELL(bits, type)                                                                                                    \
    INLINE type read_##bits(const volatile type *addr)                                                                      \
    {                                                                                                                       \
        return __atomic_load_n(addr, __ATOMIC_SEQ_CST);                                                                     \
    }                                                                                                                       \
    INLINE bool swap_##bits(volatile type *addr, type *old, type value)                                                     \
    {                                                                                                                       \
        return __atomic_compare_exchange_n(addr, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                    \
    }

CELL(8, uint8_t)
CELL(16, uint16_t)
CELL(32, uint32_t)
CELL(64, uint64_t)

/* The builtins would call libatomic. */
INLINE bool swap_128(volatile unsigned __int128 *addr, unsigned __int128 *old, unsigned __int128 value)
{
    uint64_t low = (uint64_t)*old, high = (uint64_t)(*old >> 64);
    bool done;
    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(done), "+m"(*addr), "+a"(low), "+d"(high)
                         : "b"((uint64_t)value), "c"((uint64_t)(value >> 64))
                         : "memory");
    *old = (unsigned __int128)high << 64 | low;
    return done;
}

INLINE unsigned __int128 read_128(const volatile unsigned __int128 *addr)
{
    unsigned __int128 value = 0;
    swap_128((volatile unsigned __int128 *)addr, &value, 0);
    return value;
}

/* The value before an operation that writes. It comes before everything else: an address that nothing is mapped at faults here, where no
 * object is locked and the thread is not busy, and the program's handler may jump away. */
#define FIRST(bits, addr) read_##bits(addr)

/* The new value of a store does not depend on the old one. */
#define WRITE(bits, addr, old, value)                                                                                       \
    do {                                                                                                                    \
    } while (!swap_##bits((addr), &(old), (value)))

/* What a pointer is given to others by: guest/escape.h, 3. */
#define GIVES(self, addr, value)                                                                                            \
    do {                                                                                                                    \
        if (sizeof *(addr) >= sizeof(uintptr_t) && __builtin_expect(rf_escape_leaves != NULL, 0))                           \
            gives(self, (uintptr_t)(addr), (value), sizeof *(addr));                                                        \
    } while (0)

static __attribute__((noinline)) void gives(struct rf_self *self, uintptr_t addr, unsigned __int128 value, size_t size)
{
    for (size_t at = 0; at < size; at += sizeof(uintptr_t), value >>= 64)
        rf_escape_given(self, addr + at, (uintptr_t)value);
}

#define LOAD(bits, type)                                                                                                    \
    RF_EXPORT type __tsan_atomic##bits##_load(const volatile type *addr, int order);                                        \
    type __tsan_atomic##bits##_load(const volatile type *addr, int order)                                                   \
    {                                                                                                                       \
        struct rf_self *self = rf_hot.self;                                                                                 \
        type value = read_##bits(addr);                                                                                     \
        if (rf_atomic_is_lone(self, addr, order)) {                                                                         \
            rf_atomic_lone_read(self, (uintptr_t)addr, sizeof *addr, PC);                                                   \
            return value;                                                                                                   \
        }                                                                                                                   \
        if (!(self = rf_atomic_self()))                                                                                     \
            return value;                                                                                                   \
        struct rf_atomic op = rf_atomic_begin(self, addr, sizeof *addr, order, PC);                                         \
        if (rf_atomic_open(&op, false)) {                                                                                   \
            value = read_##bits(addr);                                                                                      \
            rf_atomic_read(&op, op.acquires);                                                                               \
        }                                                                                                                   \
        op.publishes = false;                                                                                               \
        rf_atomic_check(&op, false);                                                                                        \
        return value;                                                                                                       \
    }

#define STORE(bits, type)                                                                                                   \
    RF_EXPORT void __tsan_atomic##bits##_store(volatile type *addr, type value, int order);                                 \
    void __tsan_atomic##bits##_store(volatile type *addr, type value, int order)                                            \
    {                                                                                                                       \
        struct rf_self *self = rf_hot.self;                                                                                 \
        type old = FIRST(bits, addr);                                                                                       \
        if (rf_atomic_is_lone(self, addr, order) && swap_##bits(addr, &old, value)) {                                       \
            rf_atomic_lone_write(self, (uintptr_t)addr, sizeof *addr, PC);                                                  \
            return;                                                                                                         \
        }                                                                                                                   \
        if (!(self = rf_atomic_self())) {                                                                                   \
            WRITE(bits, addr, old, value);                                                                                  \
            return;                                                                                                         \
        }                                                                                                                   \
        struct rf_atomic op = rf_atomic_begin(self, addr, sizeof *addr, order, PC);                                         \
        GIVES(self, addr, value);                                                                                           \
        op.acquires = false;                                                                                                \
        rf_atomic_check(&op, true);                                                                                         \
        do {                                                                                                                \
            if (rf_atomic_open(&op, op.publishes)) {                                                                        \
                rf_atomic_fetch(&op);                                                                                       \
                WRITE(bits, addr, old, value);                                                                              \
                rf_atomic_written(&op);                                                                                     \
                return;                                                                                                     \
            }                                                                                                               \
        } while (!swap_##bits(addr, &old, value));                                                                          \
    }

#define UPDATE(bits, type, name, result)                                                                                    \
    RF_EXPORT type __tsan_atomic##bits##_##name(volatile type *addr, type value, int order);                                \
    type __tsan_atomic##bits##_##name(volatile type *addr, type value, int order)                                           \
    {                                                                                                                       \
        struct rf_self *self = rf_hot.self;                                                                                 \
        struct rf_object *object = rf_atomic_meet(self, addr, sizeof *addr, order);                                         \
        type old = FIRST(bits, addr);                                                                                       \
        if (rf_atomic_quick_lock(self, object, addr)) {                                                                     \
            WRITE(bits, addr, old, (type)(result));                                                                         \
            rf_atomic_quick_updated(self, object, (uintptr_t)addr, sizeof *addr, PC);                                       \
            return old;                                                                                                     \
        }                                                                                                                   \
        if (rf_atomic_is_lone(self, addr, order) && swap_##bits(addr, &old, (type)(result))) {                              \
            rf_atomic_lone_write(self, (uintptr_t)addr, sizeof *addr, PC);                                                  \
            return old;                                                                                                     \
        }                                                                                                                   \
        if (!(self = rf_atomic_self())) {                                                                                   \
            WRITE(bits, addr, old, (type)(result));                                                                         \
            return old;                                                                                                     \
        }                                                                                                                   \
        struct rf_atomic op = rf_atomic_begin(self, addr, sizeof *addr, order, PC);                                         \
        GIVES(self, addr, value);                                                                                           \
        bool early = op.publishes || rf_refuses;                                                                            \
        if (early)                                                                                                          \
            rf_atomic_check(&op, true);                                                                                     \
        do {                                                                                                                \
            if (rf_atomic_open(&op, op.publishes)) {                                                                        \
                rf_atomic_fetch(&op);                                                                                       \
                rf_atomic_refuse(&op);                                                                                      \
                WRITE(bits, addr, old, (type)(result));                                                                     \
                rf_atomic_updated(&op);                                                                                     \
                break;                                                                                                      \
            }                                                                                                               \
            rf_atomic_refuse(&op);                                                                                          \
        } while (!swap_##bits(addr, &old, (type)(result)));                                                                 \
        if (early)                                                                                                          \
            rf_atomic_settle(&op);                                                                                          \
        else                                                                                                                \
            rf_atomic_check(&op, true);                                                                                     \
        return old;                                                                                                         \
    }

/* If the value is as expected and the operation publishes, its history is written before it is tried: `told`. */
#define COMPARE(bits, type)                                                                                                 \
    INLINE type compare_##bits(volatile type *addr, type expected, type value, int order, int failure, uintptr_t pc)        \
    {                                                                                                                       \
        struct rf_self *self = rf_atomic_self();                                                                            \
        type old = expected;                                                                                                \
        if (!self) {                                                                                                        \
            swap_##bits(addr, &old, value);                                                                                 \
            return old;                                                                                                     \
        }                                                                                                                   \
        struct rf_atomic op = rf_atomic_begin(self, addr, sizeof *addr, order, pc);                                         \
        GIVES(self, addr, value);                                                                                           \
        bool told = false, done = false, early = op.publishes || rf_refuses;                                                                                   \
        for (;;) {                                                                                                          \
            old = read_##bits(addr);                                                                                        \
            bool likely = old == expected;                                                                                  \
            if (likely && early && !told) {                                                                                 \
                rf_atomic_check(&op, true);                                                                                 \
                told = true;                                                                                                \
            }                                                                                                               \
            if (rf_atomic_open(&op, likely && op.publishes)) {                                                              \
                old = read_##bits(addr);                                                                                    \
                if (old == expected && early && !told) {                                                                    \
                    rf_atomic_close(&op);                                                                                   \
                    continue;                                                                                               \
                }                                                                                                           \
                if (old == expected)                                                                                        \
                    rf_atomic_refuse(&op);                                                                                  \
                old = expected;                                                                                             \
                done = swap_##bits(addr, &old, value);                                                                      \
                if (done)                                                                                                   \
                    rf_atomic_updated(&op);                                                                                 \
                else                                                                                                        \
                    rf_atomic_read(&op, rf_atomic_acquires(failure));                                                       \
                break;                                                                                                      \
            }                                                                                                               \
            if (!likely)                                                                                                    \
                break;                                                                                                      \
            rf_atomic_refuse(&op);                                                                                          \
            done = swap_##bits(addr, &old, value);                                                                          \
            if (done)                                                                                                       \
                break;                                                                                                      \
        }                                                                                                                   \
        if (told) {                                                                                                         \
            rf_atomic_settle(&op);                                                                                          \
        } else {                                                                                                            \
            op.publishes = false;                                                                                           \
            rf_atomic_check(&op, done);                                                                                     \
        }                                                                                                                   \
        return old;                                                                                                         \
    }

#define COMPARE_SHAPES(bits, type)                                                                                          \
    RF_EXPORT type __tsan_atomic##bits##_compare_exchange_val(volatile type *addr, type expected, type value, int order,    \
                                                              int failure);                                                 \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *addr, type expected, type value, int order, int failure) \
    {                                                                                                                       \
        return compare_##bits(addr, expected, value, order, failure, PC);                                                   \
    }                                                                                                                       \
    COMPARE_BY_POINTER(bits, type, strong)                                                                                  \
    COMPARE_BY_POINTER(bits, type, weak)

#define COMPARE_BY_POINTER(bits, type, strength)                                                                            \
    RF_EXPORT int __tsan_atomic##bits##_compare_exchange_##strength(volatile type *addr, type *expected, type value,        \
                                                                    int order, int failure);                                \
    int __tsan_atomic##bits##_compare_exchange_##strength(volatile type *addr, type *expected, type value, int order,       \
                                                          int failure)                                                      \
    {                                                                                                                       \
        type wanted = *expected, old = compare_##bits(addr, wanted, value, order, failure, PC);                             \
        if (old == wanted)                                                                                                  \
            return 1;                                                                                                       \
        *expected = old;                                                                                                    \
        return 0;                                                                                                           \
    }

#define RF_SIZE(bits, type) LOAD(bits, type) STORE(bits, type) COMPARE(bits, type) COMPARE_SHAPES(bits, type)
#include "guest/atomics_abi.def"
#undef RF_SIZE

#define RF_UPDATE(name, result) UPDATE(8, uint8_t, name, result)
#include "guest/atomics_abi.def"
#undef RF_UPDATE
#define RF_UPDATE(name, result) UPDATE(16, uint16_t, name, result)
#include "guest/atomics_abi.def"
#undef RF_UPDATE
#define RF_UPDATE(name, result) UPDATE(32, uint32_t, name, result)
#include "guest/atomics_abi.def"
#undef RF_UPDATE
#define RF_UPDATE(name, result) UPDATE(64, uint64_t, name, result)
#include "guest/atomics_abi.def"
#undef RF_UPDATE
#define RF_UPDATE(name, result) UPDATE(128, unsigned __int128, name, result)
#include "guest/atomics_abi.def"
#undef RF_UPDATE
