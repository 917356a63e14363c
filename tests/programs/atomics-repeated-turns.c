// expect: none
// runs: 3
// Threads hand plain data around by updates of one location, thousands of times: each update receives what all before it published.
#include "tests/programs/order.h"
#include <stdatomic.h>
#include <stdint.h>

enum { MOST = 4, ROUNDS = 1000 };

static atomic_ullong turn; /* a word of its own */
static unsigned threads, data[MOST], sum;

static NOINLINE void *part(void *argument)
{
    unsigned me = (unsigned)(uintptr_t)argument;
    for (unsigned round = 0; round < ROUNDS; round++) {
        while (atomic_fetch_add_explicit(&turn, 0, memory_order_acq_rel) % threads != me)
            hidden_yield();
        for (unsigned i = 0; i < threads; i++)
            sum += data[i];
        data[me] = round;
        atomic_fetch_add(&turn, 1);
    }
    return NULL;
}

static unsigned expected_sum(void)
{
    unsigned result = 0, seen[MOST] = { 0 };
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < threads; i++) {
            for (unsigned j = 0; j < threads; j++)
                result += seen[j];
            seen[i] = round;
        }
    return result;
}

int main(void)
{
    for (threads = 2; threads <= MOST; threads++) {
        pthread_t started[MOST];
        atomic_store(&turn, 0);
        sum = 0;
        for (unsigned i = 0; i < threads; i++)
            data[i] = 0;
        for (uintptr_t i = 0; i < threads; i++)
            MUST(pthread_create(&started[i], NULL, part, (void *)i) == 0);
        for (unsigned i = 0; i < threads; i++)
            MUST(pthread_join(started[i], NULL) == 0);
        MUST(sum == expected_sum());
    }
    return 0;
}
