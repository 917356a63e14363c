// expect: none
// options: on_race=exception
// runs: 3
/* Atomic operations against plain accesses: what is refused leaves the value as it was, and what the operation itself acquires orders. */
#include <redflag.h>
#include <stdatomic.h>

#include "tests/programs/order.h"

static _Atomic int value, handed;
static int *plain = (int *)&value;

static void *first(void *unused)
{
    *plain = 5;
    *(int *)&handed = 1; /* initialised plainly, then handed over through itself */
    atomic_store_explicit(&handed, 2, memory_order_release);
    reach(1);
    return unused;
}

#define REFUSED(operation)                   \
    do {                                     \
        volatile int caught = 0;             \
        redflag_try {                        \
            operation;                       \
        } redflag_catch (race) {             \
            caught = 1;                      \
            MUST(race->address == &value);   \
            MUST(race->now.kind & REDFLAG_ATOMIC); \
        }                                    \
        MUST(caught);                        \
    } while (0)

static void *second(void *unused)
{
    int expected = 5;
    await(1);
    REFUSED(atomic_store(&value, 1));
    REFUSED(atomic_store_explicit(&value, 1, memory_order_relaxed));
    REFUSED((void)atomic_load(&value));
    REFUSED(atomic_fetch_add(&value, 1));
    REFUSED(atomic_fetch_add_explicit(&value, 1, memory_order_relaxed));
    REFUSED(atomic_fetch_add_explicit(&value, 1, memory_order_acquire));
    REFUSED(atomic_exchange_explicit(&value, 1, memory_order_release));
    REFUSED(atomic_compare_exchange_strong(&value, &expected, 1));
    REFUSED(atomic_compare_exchange_strong_explicit(&value, &expected, 1, memory_order_acquire, memory_order_relaxed));
    REFUSED(atomic_compare_exchange_strong_explicit(&value, &expected, 1, memory_order_relaxed, memory_order_relaxed));
    MUST(atomic_fetch_add(&handed, 1) == 2); /* it acquires what orders it after the initialisation */
    MUST(atomic_fetch_add_explicit(&handed, 1, memory_order_acquire) == 3);
    int now;
    __asm__ volatile("movl %1, %0" : "=r"(now) : "m"(value));
    MUST(now == 5);
    return unused;
}

int main(void)
{
    run_both(first, second);
    MUST(*plain == 5 && handed == 4);
    return 0;
}
