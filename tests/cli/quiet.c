/* Code that changes under everybody's feet: pacer's first period begins while threads compute, handlers of signals run and children are
 * forked, all of them in the code that changes, which lies in many pages. What they compute must be right.
 *
 *   quiet [gone|divided]    gone: its file is removed first; divided: parts of the code are mappings of their own
 *
 * Ends with 3 if the code was not quiet at the start. If something is wrong it says so. Else there is a race, written in the period. */
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/order.h"

enum { ITEMS = 1024, COMPUTE = 2, OPERATIONS = 100000, FORK_EVERY = 60, SIGNAL_EVERY = 5, WRITES = 50, READ = 1, STOP = 2 };

#define CHECK(what)                                                                                                         \
    do {                                                                                                                    \
        if (!(what)) {                                                                                                      \
            static const char text[] = "wrong: " #what "\n";                                                                \
            if (write(2, text, sizeof text - 1) < 0) {                                                                      \
            }                                                                                                               \
            _exit(4);                                                                                                       \
        }                                                                                                                   \
    } while (0)

#define ONE(i) at[i] += (i) + 1u;
#define FOUR(i) ONE(i) ONE((i) + 1) ONE((i) + 2) ONE((i) + 3)
#define SIXTEEN(i) FOUR(i) FOUR((i) + 4) FOUR((i) + 8) FOUR((i) + 12)
#define MANY(i) SIXTEEN(i) SIXTEEN((i) + 16) SIXTEEN((i) + 32) SIXTEEN((i) + 48)
#define MORE(i) MANY(i) MANY((i) + 64) MANY((i) + 128) MANY((i) + 192)

NOINLINE static void work(unsigned volatile *at)
{
    MORE(0) MORE(256) MORE(512) MORE(768)
}

static void check(const unsigned volatile *at, unsigned rounds)
{
    for (unsigned i = 0; i < ITEMS; i++)
        CHECK(at[i] == rounds * (i + 1));
}

/* Does the code of work() do nothing where it would call hooks? */
__attribute__((no_sanitize("thread"))) NOINLINE static int is_quiet(void)
{
    static const unsigned char nothing[] = { 0x0f, 0x1f, 0x44, 0, 0 };
    const unsigned char *code = (const unsigned char *)(uintptr_t)work;
    int count = 0;
    for (int i = 0; i < 8192; i++) {
        int same = 1;
        for (int j = 0; j < 5; j++)
            same &= code[i + j] == nothing[j];
        count += same;
    }
    return count > 100;
}

static void *compute(void *unused)
{
    unsigned volatile *at = calloc(ITEMS, sizeof *at);
    unsigned rounds = 0;
    for (; present_stage() < STOP; rounds++)
        work(at);
    check(at, rounds);
    free((void *)at);
    return unused;
}

static void handle(int unused)
{
    unsigned volatile mine[ITEMS];
    (void)unused;
    for (unsigned i = 0; i < ITEMS; i++)
        mine[i] = 0;
    work(mine);
    work(mine);
    check(mine, 2);
}

static int shared[WRITES * 16];
static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;

static void synchronise(void)
{
    pthread_mutex_lock(&mine);
    pthread_mutex_unlock(&mine);
}

NOINLINE static void write_shared(int i)
{
    shared[i * 16] = 1;
}

NOINLINE static int read_shared(int i)
{
    return shared[i * 16];
}

static void *partner(void *unused)
{
    int sum = 0;
    await(READ);
    for (int i = 0; i < WRITES; i++)
        sum += read_shared(i);
    CHECK(sum == WRITES);
    return unused;
}

/* The child goes on where the parent is: its code changes too, at a time of its own. */
static void fork_one(void)
{
    static unsigned at[ITEMS];
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        for (int i = 0; i < 100; i++) {
            synchronise();
            work(at);
        }
        check(at, 100);
        _exit(0);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0)
        ;
    CHECK(status == 0);
}

/* One, once: however slow the machine is, handlers leave time for the rest. This thread takes it, or lets one of the others. */
static void signal_soon(int here)
{
    struct itimerval soon = { { 0, 0 }, { 0, 50 } };
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    CHECK(pthread_sigmask(here ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL) == 0 && setitimer(ITIMER_REAL, &soon, NULL) == 0);
}

/* Of the mapping that work() lies in. */
static int has_name(void)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    int found = -1;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        if (sscanf(line, "%lx-%lx", &begin, &end) == 2 && begin <= (unsigned long)work && (unsigned long)work < end)
            found = strchr(line, '/') && strstr(line, " r-xp ");
    }
    if (maps)
        fclose(maps);
    return found;
}

int main(int count, char **arguments)
{
    pthread_t threads[COMPUTE + 1];
    int gone = count > 1 && strcmp(arguments[1], "gone") == 0;
    if (!is_quiet())
        return 3;
    if (gone)
        CHECK(unlink(arguments[0]) == 0);
    if (count > 1 && strcmp(arguments[1], "divided") == 0)
        CHECK(madvise((void *)((uintptr_t)&main & ~(uintptr_t)4095), 4096, MADV_RANDOM) == 0);
    for (int i = 0; i <= COMPUTE; i++)
        CHECK(pthread_create(&threads[i], NULL, i < COMPUTE ? compute : partner, NULL) == 0);
    struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    int operations = 0;
    for (; operations < OPERATIONS && is_quiet(); operations++) {
        synchronise();
        if (operations % SIGNAL_EVERY == 0)
            signal_soon(operations / SIGNAL_EVERY % 2);
        if (operations % FORK_EVERY == FORK_EVERY / 2)
            fork_one();
    }
    CHECK(operations < OPERATIONS);
    for (int i = 0; i < WRITES; i++) {
        write_shared(i);
        synchronise();
    }
    reach(READ);
    pthread_join(threads[COMPUTE], NULL);
    reach(STOP);
    for (int i = 0; i < COMPUTE; i++)
        pthread_join(threads[i], NULL);
    CHECK(has_name() == !gone);
    return 0;
}
