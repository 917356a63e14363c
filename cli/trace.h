/* The parts of `redflag trace`: what they share. */
#ifndef RF_CLI_TRACE_H
#define RF_CLI_TRACE_H

#include "trace/trace.h"

int rf_trace_convert(int argc, char **argv);
int rf_trace_head(int argc, char **argv);
int rf_trace_info(int argc, char **argv);
int rf_trace_check(int argc, char **argv);
int rf_trace_generate(int argc, char **argv);

/* One line on standard error; returns RF_EXIT_USAGE. */
__attribute__((format(printf, 1, 2))) int rf_trace_complain(const char *format, ...);
/* Complains about the option that getopt_long() has just refused. */
int rf_trace_bad_option(const char *command, char **argv, bool lacks_value);
/* "std" or "rft". */
bool rf_trace_format(const char *text, enum rf_trace_format *format);
bool rf_trace_number(const char *text, uint64_t *number);
/* The trace that is the only argument left; NULL after a complaint. */
struct rf_reader *rf_trace_open(const char *command, int argc, char **argv, enum rf_trace_format format);
/* How the reading ended: complains if it did not end well, and returns the exit status. */
int rf_trace_end(const struct rf_reader *reader, enum rf_trace_status status);

/* The next batch is decoded and not resolved: its events are those of the file. */
enum rf_trace_status rf_trace_raw(struct rf_reader *reader, struct rf_chunk *chunk, struct rf_batch *batch);

#endif
