/* A hash table with a mutex for each stripe of buckets. */
#include "bench/kernels/kernel.h"

enum { BUCKETS = 1 << 16, STRIPES = 64, OPERATIONS = SCALED(3000000) };

struct item {
    struct item *next;
    uint64_t key, value;
};

static struct item *table[BUCKETS];
static pthread_mutex_t locks[STRIPES];

static void *part(void *argument)
{
    uint64_t seed = 3 + (uint64_t)(intptr_t)argument;
    for (int i = 0; i < OPERATIONS; i++) {
        uint64_t key = random_next(&seed) % 100000;
        unsigned bucket = (unsigned)(key * 0x9e3779b97f4a7c15u >> 48);
        pthread_mutex_t *lock = &locks[bucket % STRIPES];
        pthread_mutex_lock(lock);
        struct item *item = table[bucket];
        while (item && item->key != key)
            item = item->next;
        if (!item) {
            item = malloc(sizeof *item);
            *item = (struct item){ table[bucket], key, 0 };
            table[bucket] = item;
        }
        item->value++;
        pthread_mutex_unlock(lock);
    }
    return NULL;
}

int main(void)
{
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&locks[i], NULL);
    run_threads(part);
    uint64_t sum = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (struct item *item = table[i]; item; item = item->next)
            sum += item->value;
    printf("%llu\n", (unsigned long long)sum);
    return sum != (uint64_t)THREADS * OPERATIONS;
}
