/* redflag record: a program's run as a trace, for `analyze`, `compare` and `simulate`.
 *
 * 1. The program runs as a child, by way of `redflag run`; its runtime writes events into memory that both have (core/recording.h), and
 *    this process writes the trace. A program that is killed loses nothing of what it had written there.
 * 2. The memory's descriptor and the variable that names it are gone when the program's own code begins.
 * 3. If the trace cannot be written any further, that is said once, the program is told and goes on, unrecorded.
 * 4. The exit status is the program's.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/record.h"
#include "cli/run_options.h"
#include "trace/grow.h"

#define WHO "redflag record"
#define BLOCKS 65536u /* 16 KiB each; what is not used takes no memory */
#define FEWEST 32u
#define PLENTY 1024u /* 16 MiB: what a recorder that is a little behind needs */

static int help(void)
{
    puts("usage: redflag record [-o FILE] [OPTION...] [--] PROGRAM [ARGUMENT...]\n\n"
         "Runs a program that was built with `redflag cc`, or with `gcc -fsanitize=thread`, and records what it does, for\n"
         "`redflag analyze`, `compare` and `simulate`. Nothing is reported meanwhile.\n\n"
         "  -o FILE     where the trace goes: .rft, or text if the name ends otherwise; redflag.rft if it is not given\n"
         "  -q          do not say at the end what was recorded\n\n"
         "Other options are those of `redflag run`.\n\n"
         "Exit status: that of the program, 128 and the signal's number if one ended it; 2 if it cannot be recorded.");
    return RF_EXIT_OK;
}

/* A limit on the size of files is one on this memory too: then there is less of it. */
static struct rf_recording *make_memory(int *fd)
{
    *fd = memfd_create("redflag-recording", 0);
    for (uint32_t blocks = BLOCKS; *fd >= 0 && blocks >= FEWEST; blocks /= 2) {
        uint64_t bytes = rf_rec_before_blocks(blocks) + (uint64_t)blocks * sizeof(struct rf_rec_block);
        if (ftruncate(*fd, (off_t)bytes) != 0)
            continue;
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
        if (memory == MAP_FAILED)
            continue;
        struct rf_recording *recording = memory;
        recording->magic = RF_REC_MAGIC;
        recording->bytes = bytes;
        recording->blocks = blocks;
        recording->plenty = PLENTY < blocks / 2 ? PLENTY : blocks / 2;
        recording->recorder = (int32_t)getpid();
        return recording;
    }
    fprintf(stderr, WHO ": no memory to share with the program: %s\n", strerror(errno));
    return NULL;
}

/* ---- the program ---- */

static volatile sig_atomic_t program; /* the child */

static void pass_on(int number)
{
    if (program > 0)
        kill(program, number);
}

static pid_t start(int argc, char **argv, int fd)
{
    char text[16];
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_DFL);
        snprintf(text, sizeof text, "%d", fd);
        setenv(RF_REC_VARIABLE, text, 1);
        exit(rf_cli_run(argc, argv));
    }
    if (child < 0)
        fprintf(stderr, WHO ": cannot start a process: %s\n", strerror(errno));
    /* What the terminal sends goes to the program by itself. */
    program = child;
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGTERM, pass_on);
    signal(SIGHUP, pass_on);
    return child;
}

/* Has what is recorded ended? It is the child, or one that the child started, which may outlive it. */
static bool has_ended(const struct rf_recording *recording, pid_t child, int *status, bool *child_ended)
{
    int one;
    for (pid_t gone; (gone = waitpid(-1, &one, WNOHANG)) > 0;)
        if (gone == child) {
            *status = one;
            *child_ended = true;
        }
    int32_t recorded = __atomic_load_n(&recording->program, __ATOMIC_ACQUIRE);
    return *child_ended && (!recorded || recorded == child || (kill(recorded, 0) != 0 && errno == ESRCH));
}

static void stop(struct rf_recording *recording)
{
    __atomic_store_n(&recording->stopped, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&recording->turn, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &recording->turn, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static int record(const char *path, bool quiet, int argc, char **argv)
{
    char *error = NULL;
    int fd, status = 0;
    struct rf_recording *recording = make_memory(&fd);
    if (!recording)
        return RF_EXIT_USAGE;
    struct rf_writer *writer = rf_writer_open(path, RF_FORMAT_AUTO, &error);
    if (!writer) {
        fprintf(stderr, WHO ": %s\n", error);
        free(error);
        return RF_EXIT_USAGE;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t child = start(argc, argv, fd);
    close(fd);
    if (child < 0)
        return RF_EXIT_USAGE;
    struct rf_merge *merge = rf_merge_new(recording, writer);
    bool child_ended = false, ended = false, stopped = false;
    for (unsigned idle = 0;;) {
        if (!stopped && rf_merge_step(merge, ended)) {
            idle = 0;
            if (!rf_writer_failed(writer))
                continue;
            stopped = true;
            stop(recording);
            continue;
        }
        if (ended)
            break;
        ended = has_ended(recording, child, &status, &child_ended);
        if (!ended) /* soon again at first; a program that waits is not looked at all the time */
            usleep(stopped ? 10000 : idle < 100 ? 50 : 1000);
        idle++;
    }
    uint64_t events = rf_merge_events(merge);
    uint32_t threads = rf_merge_threads(merge);
    rf_merge_free(merge);
    bool good = rf_writer_close(writer, &error);
    int result = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (!good) {
        fprintf(stderr, WHO ": %s; the trace ends there, after about %" PRIu64 " events\n", error, events);
        free(error);
        return result ? result : RF_EXIT_USAGE;
    }
    if (!recording->program) {
        if (!result)
            fprintf(stderr, WHO ": %s: nothing was recorded: no runtime of ours began in it\n", argv[argc - 1]);
        unlink(path);
        return result ? result : RF_EXIT_USAGE;
    }
    if (!quiet)
        fprintf(stderr, WHO ": %s: %" PRIu64 " events of %" PRIu32 " threads\n", path, events, threads);
    return result;
}

/* How many arguments an option of `redflag run` takes; 0: it is none, which was said. */
static int option_length(char **arguments, int count)
{
    struct rf_run_text text = { 0 };
    int used;
    rf_run_option(&text, WHO, arguments, count, &used);
    free(text.text);
    return used;
}

int rf_cli_record(int argc, char **argv)
{
    const char *path = "redflag.rft";
    bool quiet = false;
    char **rest = rf_zeroed((size_t)argc + 1, sizeof *rest);
    int count = 0, i = 1;
    rest[count++] = argv[0];
    for (; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            free(rest);
            return help();
        }
        if (!strcmp(argv[i], "-q")) {
            quiet = true;
        } else if (!strcmp(argv[i], "-o")) {
            if (i + 1 == argc) {
                fputs(WHO ": -o: a value is missing\n", stderr);
                free(rest);
                return RF_EXIT_USAGE;
            }
            path = argv[++i];
        } else if (!strncmp(argv[i], "-o", 2)) {
            path = argv[i] + 2;
        } else {
            int used = option_length(argv + i, argc - i);
            if (!used) {
                free(rest);
                return RF_EXIT_USAGE;
            }
            for (; used > 1; used--)
                rest[count++] = argv[i++];
            rest[count++] = argv[i];
        }
    }
    if (i < argc && !strcmp(argv[i], "--"))
        i++;
    if (i >= argc) {
        fputs(WHO ": no program is named; try 'redflag record --help'\n", stderr);
        free(rest);
        return RF_EXIT_USAGE;
    }
    rest[count++] = "--";
    while (i < argc)
        rest[count++] = argv[i++];
    int result = record(path, quiet, count, rest);
    free(rest);
    return result;
}
