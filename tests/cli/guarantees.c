/* guarantees SEED: a random program whose every step has its place in one order, so that all runs of a seed are the same execution: it can be
 * recorded, and run under any detector. tests/cli/guarantees.sh compares.
 *
 * The plan, a list of (thread, operation), is made before the first thread, in code without hooks; so are the waits for one's turn. An
 * operation of the plan never blocks. Prints the address of the memory that the operations access.
 */
#include <pthread.h>
#include <redflag.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdint.h>
#include <threads.h>

#include "tests/programs/order.h"

#define PLAIN __attribute__((no_sanitize("thread")))
#define THREADS 4
#define LOCKS 5 /* 0, 1: mutexes; 2: of C11; 3: a spin lock; 4: for readers and writers */
#define FLAGS 2
#define BYTES 192
#define STEPS 300

enum operation { READ, WRITE, LOCK, READ_LOCK, UNLOCK, POST, WAIT, RELEASE, ACQUIRE, UPDATE, COMMIT, OPERATIONS };

struct step {
    enum operation operation;
    unsigned thread, which, size, other;
};

static struct step plan[STEPS];
static unsigned steps;
static unsigned char memory[BYTES] __attribute__((aligned(8)));
static pthread_mutex_t mutexes[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static mtx_t mutex11;
static pthread_spinlock_t spin;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static _Atomic int flags[FLAGS];

static PLAIN unsigned below(uint64_t *state, unsigned limit)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (unsigned)((z ^ (z >> 31)) % limit);
}

static PLAIN void add(struct step step)
{
    plan[steps++] = step;
}

static PLAIN void make_plan(uint64_t seed)
{
    uint64_t random = seed * 2654435761u + 1;
    unsigned writer[LOCKS], readers[LOCKS] = { 0 }, posts = 0; /* who holds it; THREADS: nobody; readers are a set of bits */
    unsigned kinds = below(&random, 3); /* 2: with transactions, too */
    for (unsigned i = 0; i < LOCKS; i++)
        writer[i] = THREADS;
    while (steps < STEPS - THREADS * LOCKS - 4) {
        struct step step = { .thread = below(&random, THREADS) };
        unsigned me = step.thread, lock = below(&random, LOCKS), dice = below(&random, 100);
        unsigned held = 0;
        for (unsigned i = 0; i < LOCKS; i++)
            held += writer[i] == me || (readers[i] >> me & 1);
        step.size = 1u << below(&random, 4);
        step.which = below(&random, BYTES / step.size) * step.size;
        step.other = below(&random, BYTES / 8) * 8;
        if (dice < 8) {
            step.operation = below(&random, 3) ? READ : WRITE;
        } else if (dice < 58) {
            /* Two accesses under a lock, of two granules, whose lock it mostly is. */
            if (writer[lock] != THREADS || readers[lock])
                continue;
            bool reads = lock == 4 && below(&random, 2);
            add((struct step){ .operation = reads ? READ_LOCK : LOCK, .thread = me, .which = lock });
            for (unsigned i = 0; i < 2; i++) {
                unsigned granule = below(&random, 20) ? lock + LOCKS * below(&random, BYTES / 8 / LOCKS) : below(&random, BYTES / 8);
                add((struct step){ .operation = below(&random, reads ? 12 : 2) ? READ : WRITE, .thread = me, .size = step.size,
                                   .which = granule * 8 + step.which % 8 });
            }
            step.operation = UNLOCK;
            step.which = lock;
        } else if (dice < 72) {
            step.which = lock;
            if (writer[lock] == me || (readers[lock] >> me & 1)) {
                step.operation = UNLOCK;
                writer[lock] = writer[lock] == me ? THREADS : writer[lock];
                readers[lock] &= ~(1u << me);
            } else if (writer[lock] != THREADS || held > 2) {
                continue;
            } else if (lock == 4 && below(&random, 2)) {
                step.operation = READ_LOCK;
                readers[lock] |= 1u << me;
            } else if (!readers[lock]) {
                step.operation = LOCK;
                writer[lock] = me;
            } else {
                continue;
            }
        } else if (dice < 86) {
            step.operation = posts ? WAIT : POST;
            posts = !posts;
        } else if (dice < 96 || kinds < 2) {
            step.operation = RELEASE + below(&random, 3);
            step.which = below(&random, FLAGS);
        } else {
            step.operation = COMMIT;
        }
        add(step);
    }
    for (unsigned lock = 0; lock < LOCKS; lock++)
        for (unsigned thread = 0; thread < THREADS; thread++)
            if (writer[lock] == thread || (readers[lock] >> thread & 1))
                add((struct step){ .operation = UNLOCK, .thread = thread, .which = lock });
}

#define ACCESS(type)                                           \
    do {                                                       \
        volatile type *p = (volatile type *)(void *)(memory + at); \
        if (write)                                             \
            *p = (type)at;                                     \
        else                                                   \
            (void)*p;                                          \
    } while (0)

static NOINLINE void access_at(unsigned at, unsigned size, int write)
{
    switch (size) {
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
}

static PLAIN void lock_one(unsigned lock, int shared)
{
    if (lock < 2)
        MUST(pthread_mutex_lock(&mutexes[lock]) == 0);
    else if (lock == 2)
        MUST(mtx_lock(&mutex11) == thrd_success);
    else if (lock == 3)
        MUST(pthread_spin_lock(&spin) == 0);
    else if (shared)
        MUST(pthread_rwlock_rdlock(&rw) == 0);
    else
        MUST(pthread_rwlock_wrlock(&rw) == 0);
}

static PLAIN void unlock_one(unsigned lock)
{
    if (lock < 2)
        MUST(pthread_mutex_unlock(&mutexes[lock]) == 0);
    else if (lock == 2)
        MUST(mtx_unlock(&mutex11) == thrd_success);
    else if (lock == 3)
        MUST(pthread_spin_unlock(&spin) == 0);
    else
        MUST(pthread_rwlock_unlock(&rw) == 0);
}

static NOINLINE void release(unsigned flag)
{
    atomic_store_explicit(&flags[flag], 1, memory_order_release);
}

static NOINLINE void acquire(unsigned flag)
{
    atomic_load_explicit(&flags[flag], memory_order_acquire);
}

static NOINLINE void update(unsigned flag)
{
    atomic_fetch_add_explicit(&flags[flag], 1, memory_order_acq_rel);
}

static PLAIN void perform(const struct step *step)
{
    switch (step->operation) {
    case READ:
    case WRITE:
        access_at(step->which, step->size, step->operation == WRITE);
        break;
    case LOCK:
    case READ_LOCK:
        lock_one(step->which, step->operation == READ_LOCK);
        break;
    case UNLOCK:
        unlock_one(step->which);
        break;
    case POST:
        MUST(sem_post(&semaphore) == 0);
        break;
    case WAIT:
        MUST(sem_wait(&semaphore) == 0);
        break;
    case RELEASE:
        release(step->which);
        break;
    case ACQUIRE:
        acquire(step->which);
        break;
    case UPDATE:
        update(step->which);
        break;
    default:
        redflag_txn_begin();
        access_at(step->which, step->size, 1);
        access_at(step->other, 8, 0);
        redflag_txn_commit();
    }
}

static PLAIN void *run(void *argument)
{
    unsigned me = (unsigned)(uintptr_t)argument;
    for (unsigned i = 0; i < steps; i++) {
        if (plan[i].thread != me)
            continue;
        await((int)i);
        perform(&plan[i]);
        reach((int)i + 1);
    }
    return NULL;
}

PLAIN int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    make_plan(strtoull(argv[argc - 1], NULL, 10));
    MUST(mtx_init(&mutex11, mtx_plain) == thrd_success && pthread_spin_init(&spin, 0) == 0 && sem_init(&semaphore, 0, 0) == 0);
    printf("memory %p\n", (void *)memory);
    fflush(stdout);
    for (unsigned i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    return 0;
}
