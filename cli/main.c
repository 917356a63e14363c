/* redflag: looks the command up and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary; /* NULL: not for people */
} commands[] = {
    { "cc", rf_cli_cc, "compile and link C, as gcc or clang, for `run`" },
    { "c++", rf_cli_cxx, "the same for C++" },
    { "go", rf_cli_go, "build, run and test Go programs that find their races" },
    { "run", rf_cli_run, "run a program and report its races" },
    { "record", rf_cli_record, "run a program and record what it does, as a trace" },
    { "chase", rf_cli_chase, "wait for one race in production, at a bounded cost" },
    { "sites", rf_cli_sites, "list the accesses of a program that can be watched, with their source lines" },
    { "doctor", rf_cli_doctor, "will a run work on this machine?" },
    { "analyze", rf_cli_analyze, "find the races of a trace, with any of the detectors" },
    { "compare", rf_cli_compare, "all detectors over one trace, side by side" },
    { "simulate", rf_cli_simulate, "what a trace would cost on race-detecting hardware" },
    { "trace", rf_cli_trace, "convert, inspect, check and generate traces" },
    { "watch", rf_cli_watch, "look for races in production, as the store says" },
    { "caper", rf_cli_caper, "which static pairs may race in what was run" },
    { "static", rf_cli_static, "pairs of sites that may race, from the bitcode of a whole program" },
    { "store", rf_cli_store, "what many runs know together: pairs, races, runs" },
    { "reporter", rf_cli_reporter, NULL },
};

static void help(void)
{
    puts("usage: redflag COMMAND [ARGUMENT...]\n\nFinds data races.\n\nCommands:");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].summary)
            printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    puts("\n`redflag COMMAND --help` tells more about a command, `redflag --version` which version this is.");
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        fputs("redflag: no command; try 'redflag --help'\n", stderr);
        return RF_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help();
        return RF_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("redflag " RF_VERSION);
        return RF_EXIT_OK;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "redflag: unknown command '%s'; try 'redflag --help'\n", argv[1]);
    return RF_EXIT_USAGE;
}

/* What a command printed may still be on its way; a command that failed has said so itself. */
/* A standard descriptor that is closed would be given to the next file that is opened, and what is meant for the one would go into the
 * other. So it is taken, by one that cannot be used either; a program that we start finds it closed. */
static void keep_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
            return;
}

int main(int argc, char **argv)
{
    keep_standard_descriptors();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error like a full disk, not the end of the run */
    int status = run(argc, argv);
    if (status == RF_EXIT_USAGE || (fflush(stdout) == 0 && !ferror(stdout)))
        return status;
    fprintf(stderr, "redflag: standard output: %s\n", strerror(errno));
    return RF_EXIT_USAGE;
}
