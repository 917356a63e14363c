/* soak SEED ROUNDS: a random program whose races are known because they were put there.
 *
 * Threads go through rounds, separated by a barrier of pthreads. In each round every variable is used in one way, chosen at random: by
 * one thread alone, under one lock, under a lock for readers and writers, read by all, handed over (condition variable, semaphore,
 * atomic flag, pipe, creation and join of a helper thread), atomically, freed and allocated anew; or by two threads with nothing
 * between them, which is a race. The two racing accesses are the first thing their threads do after the barrier, so nothing else
 * can order them; which comes first is left to chance.
 *
 * Prints "expect ADDRESS" for each variable that must be reported, and nothing else may be. tests/soak/run compares. Where races are
 * exceptions it prints "raised ADDRESS" for each one; one access of the two has happened then, and one only.
 */
#include <pthread.h>
#include <redflag.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define VARIABLES 24
#define LOCKS 5

enum use { ALONE, LOCKED, RW_LOCKED, READ_BY_ALL, BY_CONDITION, BY_SEMAPHORE, BY_FLAG, BY_PIPE, BY_HELPER, ATOMIC, REALLOCATED, USES, RACY };

/* One variable: bytes that are accessed with sizes 1 to 8. */
struct variable {
    enum use use;
    unsigned offset, size; /* of the accesses, inside the eight bytes */
    unsigned owner, other; /* threads */
    unsigned lock;
    int both_write;
    unsigned char *bytes;
    /* for handing over */
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    int ready;
    sem_t semaphore;
    atomic_int flag;
    int pipe[2];
};

static struct variable variables[VARIABLES];
static unsigned char *shared;
static pthread_mutex_t locks[LOCKS];
static pthread_rwlock_t rw_locks[LOCKS];
static pthread_barrier_t barrier;
static uint64_t seed;
static unsigned rounds;

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static unsigned below(uint64_t *state, unsigned limit)
{
    return (unsigned)(next(state) % limit);
}

#define ACCESS(type)                                   \
    do {                                               \
        type *p = (type *)(void *)(v->bytes + v->offset); \
        if (write)                                     \
            *p = (type)(*p * 3 + 1);                   \
        else                                           \
            sum += *p;                                 \
    } while (0)

static __attribute__((noinline)) uint64_t use(const struct variable *v, int write)
{
    uint64_t sum = 0;
    switch (v->size) {
    case 1:
        ACCESS(uint8_t);
        break;
    case 2:
        ACCESS(uint16_t);
        break;
    case 4:
        ACCESS(uint32_t);
        break;
    default:
        ACCESS(uint64_t);
    }
    return sum;
}

static __attribute__((noinline)) void only_write(const struct variable *v)
{
    memset(v->bytes + v->offset, 7, v->size);
}

/* Written by one thread (the main one, between rounds), read by all after the barrier. */
static void plan(uint64_t *random, unsigned round)
{
    for (unsigned i = 0; i < VARIABLES; i++) {
        struct variable *v = &variables[i];
        unsigned racy = below(random, 40) == 0;
        v->use = racy ? RACY : below(random, USES);
        v->size = 1u << below(random, 4);
        v->offset = below(random, 8 / v->size) * v->size;
        v->owner = below(random, THREADS);
        v->other = (v->owner + 1 + below(random, THREADS - 1)) % THREADS;
        v->lock = below(random, LOCKS);
        v->both_write = (int)below(random, 2);
        v->ready = 0;
        /* A variable that was reported once is not used again: promises end with the first race. */
        if (racy) {
            v->bytes = shared + 8 * (VARIABLES + round * VARIABLES + i);
            printf("expect %p\n", (void *)(v->bytes + v->offset));
        } else {
            v->bytes = shared + 8 * i;
        }
        atomic_store_explicit(&v->flag, 0, memory_order_relaxed);
    }
    fflush(stdout);
}

static void *help(void *context)
{
    use(context, 1);
    return NULL;
}

/* The owner's part, and then the other's. */
static uint64_t give(struct variable *v)
{
    char c = 1;
    switch (v->use) {
    case BY_CONDITION:
        use(v, 1);
        pthread_mutex_lock(&v->mutex);
        v->ready = 1;
        pthread_cond_broadcast(&v->condition);
        pthread_mutex_unlock(&v->mutex);
        break;
    case BY_SEMAPHORE:
        use(v, 1);
        sem_post(&v->semaphore);
        break;
    case BY_FLAG:
        use(v, 1);
        atomic_store_explicit(&v->flag, 1, memory_order_release);
        break;
    case BY_PIPE:
        use(v, 1);
        if (write(v->pipe[1], &c, 1) != 1)
            abort();
        break;
    case BY_HELPER: {
        pthread_t helper;
        use(v, 1);
        pthread_create(&helper, NULL, help, v);
        pthread_join(helper, NULL);
        return use(v, 1);
    }
    case REALLOCATED: {
        unsigned char *block = malloc(64);
        memset(block, 1, 64);
        block[9]++;
        free(block);
        break;
    }
    default:
        break;
    }
    return 0;
}

static uint64_t take(struct variable *v)
{
    char c;
    switch (v->use) {
    case BY_CONDITION:
        pthread_mutex_lock(&v->mutex);
        while (!v->ready)
            pthread_cond_wait(&v->condition, &v->mutex);
        pthread_mutex_unlock(&v->mutex);
        break;
    case BY_SEMAPHORE:
        while (sem_wait(&v->semaphore))
            ;
        break;
    case BY_FLAG:
        while (!atomic_load_explicit(&v->flag, memory_order_acquire))
            ;
        break;
    case BY_PIPE:
        if (read(v->pipe[0], &c, 1) != 1)
            abort();
        break;
    default:
        return 0;
    }
    return use(v, 1);
}

static uint64_t one_round(unsigned me, uint64_t *random)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < VARIABLES; i++) {
        struct variable *v = &variables[i];
        if (v->use != RACY)
            continue;
        redflag_try {
            if (v->owner == me)
                only_write(v);
            else if (v->other == me)
                use(v, v->both_write);
        } redflag_catch (race) {
            printf("raised %p\n", race->address);
        }
    }
    for (unsigned i = 0; i < VARIABLES; i++)
        if (variables[i].owner == me)
            sum += give(&variables[i]);
    for (unsigned turn = 0; turn < 40; turn++) {
        struct variable *v = &variables[below(random, VARIABLES)];
        int write = below(random, 3) == 0;
        if (v->use == LOCKED) {
            pthread_mutex_lock(&locks[v->lock]);
            sum += use(v, write);
            pthread_mutex_unlock(&locks[v->lock]);
        } else if (v->use == RW_LOCKED && write) {
            pthread_rwlock_wrlock(&rw_locks[v->lock]);
            sum += use(v, 1);
            pthread_rwlock_unlock(&rw_locks[v->lock]);
        } else if (v->use == RW_LOCKED) {
            pthread_rwlock_rdlock(&rw_locks[v->lock]);
            sum += use(v, 0);
            pthread_rwlock_unlock(&rw_locks[v->lock]);
        } else if (v->use == READ_BY_ALL) {
            sum += use(v, 0);
        } else if (v->use == ATOMIC) {
            sum += atomic_fetch_add_explicit((_Atomic uint64_t *)(void *)v->bytes, 1, memory_order_relaxed);
        } else if (v->use == ALONE && v->owner == me) {
            sum += use(v, write);
        }
    }
    for (unsigned i = 0; i < VARIABLES; i++)
        if (variables[i].other == me)
            sum += take(&variables[i]);
    return sum;
}

static void *run(void *context)
{
    unsigned me = (unsigned)(uintptr_t)context;
    uint64_t random = seed * 31 + me, plans = seed, sum = 0;
    for (unsigned round = 0; round < rounds; round++) {
        if (me == 0)
            plan(&plans, round);
        pthread_barrier_wait(&barrier);
        sum += one_round(me, &random);
        pthread_barrier_wait(&barrier);
    }
    return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 20;
    shared = calloc(VARIABLES * ((size_t)rounds + 1), 8);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (unsigned i = 0; i < LOCKS; i++) {
        pthread_mutex_init(&locks[i], NULL);
        pthread_rwlock_init(&rw_locks[i], NULL);
    }
    for (unsigned i = 0; i < VARIABLES; i++) {
        pthread_mutex_init(&variables[i].mutex, NULL);
        pthread_cond_init(&variables[i].condition, NULL);
        sem_init(&variables[i].semaphore, 0, 0);
        if (pipe(variables[i].pipe))
            return 1;
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
