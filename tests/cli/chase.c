/* Scenes for tests/cli/chase.sh: each has a first and a second site, marked by FIRST and SECOND in a comment of their line. The threads of
 * a scene come to their sites again and again, `rounds` times at least, and until both have: however late one of them begins, the other
 * is still there, and each comes to its site once more when the other has been at its own. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/order.h"

#define QUIET __attribute__((no_sanitize("thread"), noinline))

static int rounds = 200;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
int shared, counter, handed, sum_of_reads; /* not static: all writes are done */
unsigned char bytes[2];
atomic_int mixed, published;
struct wide { long words[8]; } wide, source;
int *heap;

QUIET static void pause_a_little(void)
{
    usleep(500);
}

/* The number of the next round, from 1 on; 0: there is none. */
QUIET static int next(int round)
{
    if (round == rounds)
        arrive();
    if (round <= rounds || present_stage() == 2)
        round++;
    return round <= rounds + 2 ? round : 0;
}

static void *plain_first(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        shared = i; /* FIRST plain */
    return x;
}

static __attribute__((noinline)) void deeper(int i)
{
    shared = -i; /* SECOND plain */
    pause_a_little();
}

static void *plain_second(void *x)
{
    for (int i = 0; (i = next(i));)
        deeper(i);
    return x;
}

static void *same(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        counter++; /* FIRST same SECOND same */
    return x;
}

static void *locked_first(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little()) {
        pthread_mutex_lock(&lock);
        shared = i; /* FIRST locked */
        pthread_mutex_unlock(&lock);
    }
    return x;
}

static void *locked_second(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little()) {
        pthread_mutex_lock(&lock);
        shared = -i; /* SECOND locked */
        pthread_mutex_unlock(&lock);
    }
    return x;
}

static void *rwlock_first(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little()) {
        pthread_rwlock_wrlock(&rwlock);
        shared = i; /* FIRST rwlock */
        pthread_rwlock_unlock(&rwlock);
    }
    return x;
}

static void *rwlock_second(void *x)
{
    int sum = 0;
    for (int i = 0; (i = next(i)); pause_a_little()) {
        pthread_rwlock_rdlock(&rwlock);
        sum += shared; /* SECOND rwlock */
        pthread_rwlock_unlock(&rwlock);
    }
    __atomic_fetch_add(&sum_of_reads, sum, __ATOMIC_RELAXED);
    return x;
}

/* Handed over through an atomic variable: both come to their sites, never at once. */
static void *handover_first(void *x)
{
    for (int i = 0; i < rounds; i++) {
        while (atomic_load_explicit(&published, memory_order_acquire))
            pause_a_little();
        handed = i; /* FIRST handover */
        atomic_store_explicit(&published, 1, memory_order_release);
    }
    return x;
}

static void *handover_second(void *x)
{
    for (int i = 0; i < rounds; i++) {
        while (!atomic_load_explicit(&published, memory_order_acquire))
            pause_a_little();
        handed = -i; /* SECOND handover */
        atomic_store_explicit(&published, 0, memory_order_release);
    }
    return x;
}

static void *bytes_first(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        bytes[0] = (unsigned char)i; /* FIRST bytes */
    return x;
}

static void *bytes_second(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        bytes[1] = (unsigned char)i; /* SECOND bytes */
    return x;
}

static void *reads(void *x)
{
    int sum = 0;
    for (int i = 0; (i = next(i)); pause_a_little())
        sum += shared; /* FIRST reads SECOND reads */
    __atomic_fetch_add(&sum_of_reads, sum, __ATOMIC_RELAXED);
    return x;
}

static void *atomics_first(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        atomic_store_explicit(&mixed, i, memory_order_relaxed); /* FIRST atomics FIRST mixed */
    return x;
}

static void *atomics_second(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        atomic_fetch_add_explicit(&mixed, 1, memory_order_relaxed); /* SECOND atomics */
    return x;
}

static __attribute__((noinline)) void tail(void)
{
    atomic_store_explicit(&mixed, 7, memory_order_relaxed); /* SECOND tail */
}

static void *tails(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        tail();
    return x;
}

static void *mixed_second(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        *(int *)&mixed = i; /* SECOND mixed FIRST tail */
    return x;
}

static void *ranges_first(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        wide = source; /* FIRST ranges */
    return x;
}

static void *ranges_second(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        wide.words[5] = i; /* SECOND ranges */
    return x;
}

static void *heap_first(void *x)
{
    for (int i = 0; (i = next(i)); pause_a_little())
        heap[3] = i; /* FIRST heap */
    return x;
}

static void *heap_second(void *x)
{
    int sum = 0;
    for (int i = 0; (i = next(i)); pause_a_little())
        sum += heap[3]; /* SECOND heap */
    __atomic_fetch_add(&sum_of_reads, sum, __ATOMIC_RELAXED);
    return x;
}

/* Children are born while somebody waits at the first site, and come to the second: in another process. */
static void *forks(void *x)
{
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            for (int j = 0; j < 100; j++, usleep(10))
                shared = j; /* SECOND forks */
            exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            abort();
    }
    return x;
}

static void *forks_first(void *x)
{
    for (int i = 0; i < rounds; i++, pause_a_little())
        shared = i; /* FIRST forks */
    return x;
}

static volatile sig_atomic_t alarms;
static void on_alarm(int sig)
{
    (void)sig;
    alarms++;
    shared = 1; /* SECOND signals */
}

/* One thread alone: its own handler comes to the second site. */
static void *signals(void *x)
{
    struct sigaction action = { .sa_handler = on_alarm };
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < rounds; i++) {
        raise(SIGUSR1);
        shared = i; /* FIRST signals */
    }
    if (alarms != rounds)
        abort();
    return x;
}

/* No memory is writable and executable. */
static void *mappings(void *x)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, " rwx"))
            abort();
    fclose(maps);
    shared = 1; /* FIRST mappings SECOND mappings */
    return x;
}

static void *plugin(void *file)
{
    void *library = dlopen(file, RTLD_NOW);
    void (*work)(int *, int);
    if (!library)
        abort();
    *(void **)&work = dlsym(library, "work");
    for (int i = 0; (i = next(i));)
        work(&shared, 1);
    return NULL;
}

static const struct scene {
    const char *name;
    void *(*first)(void *), *(*second)(void *);
} scenes[] = {
    { "plain", plain_first, plain_second },
    { "same", same, same },
    { "locked", locked_first, locked_second },
    { "rwlock", rwlock_first, rwlock_second },
    { "handover", handover_first, handover_second },
    { "bytes", bytes_first, bytes_second },
    { "reads", reads, reads },
    { "atomics", atomics_first, atomics_second },
    { "mixed", atomics_first, mixed_second },
    { "tail", mixed_second, tails },
    { "ranges", ranges_first, ranges_second },
    { "heap", heap_first, heap_second },
    { "forks", forks_first, forks },
    { "signals", signals, NULL },
    { "mappings", mappings, NULL },
    { "plugin", plain_first, plugin },
};

int main(int argc, char **argv)
{
    heap = calloc(8, sizeof *heap);
    if (argc > 2)
        rounds = atoi(argv[2]);
    for (size_t i = 0; argc > 1 && i < sizeof scenes / sizeof *scenes; i++) {
        pthread_t first, second;
        if (strcmp(scenes[i].name, argv[1]))
            continue;
        pthread_create(&first, NULL, scenes[i].first, argc > 3 ? argv[3] : NULL);
        if (scenes[i].second)
            pthread_create(&second, NULL, scenes[i].second, argc > 3 ? argv[3] : NULL);
        pthread_join(first, NULL);
        if (scenes[i].second)
            pthread_join(second, NULL);
        puts("done");
        return 0;
    }
    return 3;
}
