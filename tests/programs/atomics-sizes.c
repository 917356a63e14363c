// expect: none
// flags: -mcx16 -Wno-tsan -Wno-unknown-warning-option
// libs: -latomic
// Every operation of every size does what it says, alone and contended.
#include "tests/programs/order.h"
#include <stdint.h>

#define OPERATIONS(type)                                                                                      \
    static type x_##type, counter_##type;                                                                     \
    static NOINLINE void alone_##type(void)                                                                   \
    {                                                                                                         \
        type *x = &x_##type, top = (type)1 << (8 * sizeof(type) - 1), expected;                               \
        __atomic_store_n(x, (type)5, __ATOMIC_SEQ_CST);                                                       \
        MUST(__atomic_load_n(x, __ATOMIC_SEQ_CST) == 5);                                                      \
        MUST(__atomic_exchange_n(x, top | 6, __ATOMIC_ACQ_REL) == 5);                                         \
        MUST(__atomic_fetch_add(x, (type)(top + 1), __ATOMIC_RELAXED) == (type)(top | 6));                    \
        MUST(__atomic_load_n(x, __ATOMIC_RELAXED) == 7);                                                      \
        MUST(__atomic_fetch_sub(x, (type)8, __ATOMIC_RELEASE) == 7);                                          \
        MUST(__atomic_fetch_and(x, (type)(top | 12), __ATOMIC_ACQUIRE) == (type)-1);                          \
        MUST(__atomic_fetch_or(x, (type)3, __ATOMIC_SEQ_CST) == (type)(top | 12));                            \
        MUST(__atomic_fetch_xor(x, (type)(top | 5), __ATOMIC_SEQ_CST) == (type)(top | 15));                   \
        MUST(__atomic_fetch_nand(x, (type)6, __ATOMIC_SEQ_CST) == 10);                                        \
        MUST(__atomic_load_n(x, __ATOMIC_ACQUIRE) == (type)~(type)2);                                         \
        expected = 4;                                                                                         \
        MUST(!__atomic_compare_exchange_n(x, &expected, (type)1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));     \
        MUST(expected == (type)~(type)2);                                                                     \
        MUST(__atomic_compare_exchange_n(x, &expected, (type)1, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));      \
        while (!__atomic_compare_exchange_n(x, &(type){ 1 }, top, 1, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {   \
        }                                                                                                     \
        MUST(__atomic_load_n(x, __ATOMIC_SEQ_CST) == top);                                                    \
    }                                                                                                         \
    static NOINLINE void contended_##type(void)                                                               \
    {                                                                                                         \
        for (int i = 0; i < 3000; i++) {                                                                      \
            __atomic_fetch_add(&counter_##type, (type)1, i & 1 ? __ATOMIC_RELAXED : __ATOMIC_ACQ_REL);        \
            type old = __atomic_load_n(&counter_##type, __ATOMIC_RELAXED);                                    \
            while (!__atomic_compare_exchange_n(&counter_##type, &old, (type)(old + 1), 0, __ATOMIC_SEQ_CST,  \
                                                __ATOMIC_SEQ_CST)) {                                          \
            }                                                                                                 \
        }                                                                                                     \
    }

typedef unsigned __int128 uint128_t;
OPERATIONS(uint8_t)
OPERATIONS(uint16_t)
OPERATIONS(uint32_t)
OPERATIONS(uint64_t)
OPERATIONS(uint128_t)

static void *work(void *unused)
{
    contended_uint8_t();
    contended_uint16_t();
    contended_uint32_t();
    contended_uint64_t();
    contended_uint128_t();
    return unused;
}

int main(void)
{
    alone_uint8_t();
    alone_uint16_t();
    alone_uint32_t();
    alone_uint64_t();
    alone_uint128_t();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    run_both(work, work);
    MUST(counter_uint8_t == (uint8_t)12000 && counter_uint16_t == 12000 && counter_uint32_t == 12000);
    MUST(counter_uint64_t == 12000 && counter_uint128_t == 12000);
    return 0;
}
