/* What the kernels share: random numbers by seed, and a few threads that each do a part. */
#ifndef RF_BENCH_KERNEL_H
#define RF_BENCH_KERNEL_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2 };

/* How much of its work a kernel does: -DKERNEL_PERCENT=10. */
#ifndef KERNEL_PERCENT
#define KERNEL_PERCENT 100
#endif
#define SCALED(amount) ((int)((amount)*INT64_C(1) * KERNEL_PERCENT / 100) > 0 ? (int)((amount)*INT64_C(1) * KERNEL_PERCENT / 100) : 1)

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static inline void run_threads(void *(*part)(void *))
{
    pthread_t thread[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, part, (void *)i))
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

#endif
