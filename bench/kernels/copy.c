/* Blocks of many sizes copied, set and compared by libc. */
#include <string.h>

#include "bench/kernels/kernel.h"

enum { ROOM = 1 << 20, ROUNDS = SCALED(300000) };

static uint64_t results[THREADS][8];

static void *part(void *argument)
{
    uint64_t seed = 11 + (uint64_t)(intptr_t)argument, sum = 0;
    char *from = malloc(ROOM), *to = malloc(ROOM);
    memset(from, 1, ROOM);
    memset(to, 2, ROOM);
    for (int i = 0; i < ROUNDS; i++) {
        size_t size = (size_t)1 << (random_next(&seed) % 15), at = random_next(&seed) % (ROOM - 32768);
        size += random_next(&seed) % size;
        memcpy(to + at, from + at / 2, size);
        memset(from + at, (int)i, size / 4);
        sum += (uint64_t)(memcmp(to + at, from + at, size) != 0);
    }
    results[(intptr_t)argument][0] = sum;
    free(from);
    free(to);
    return NULL;
}

int main(void)
{
    run_threads(part);
    printf("%llu\n", (unsigned long long)(results[0][0] + results[1][0]));
}
