/* The commands. Each gets its own arguments, its name first, and returns the exit status of the process. */
#ifndef RF_CLI_CLI_H
#define RF_CLI_CLI_H

#include <stdbool.h>

/* What the exit statuses mean, for every command. */
enum rf_exit {
    RF_EXIT_OK = 0,
    RF_EXIT_FOUND = 1,     /* what was looked for is there, other than races: violations */
    RF_EXIT_USAGE = 2,     /* bad usage, unreadable input, or output that cannot be written */
    RF_EXIT_TRUNCATED = 3, /* the trace is damaged or cut short; what is good of it was used */
    RF_EXIT_RACES = 66     /* races were found: ThreadSanitizer's number */
};

int rf_cli_trace(int argc, char **argv);
int rf_cli_analyze(int argc, char **argv);
int rf_cli_compare(int argc, char **argv);
int rf_cli_reporter(int argc, char **argv);
int rf_cli_simulate(int argc, char **argv);
int rf_cli_cc(int argc, char **argv);
int rf_cli_cxx(int argc, char **argv);
int rf_cli_go(int argc, char **argv);
int rf_cli_run(int argc, char **argv);
int rf_cli_record(int argc, char **argv);
int rf_cli_doctor(int argc, char **argv);
int rf_cli_store(int argc, char **argv);
int rf_cli_caper(int argc, char **argv);
int rf_cli_watch(int argc, char **argv);
int rf_cli_static(int argc, char **argv);
int rf_cli_sites(int argc, char **argv);
int rf_cli_chase(int argc, char **argv);

/* Do both name one file, by whatever path? Then opening the output would destroy the input. "-" is the standard one of each. */
bool rf_cli_same_file(const char *input, const char *output);

/* All of the text is a number, and it is from `least` to `most`. */
bool rf_cli_number(const char *text, double least, double most, double *value);

#endif
