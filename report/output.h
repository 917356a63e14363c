/* Where reports go: a stream that the program lends, or a file.
 *
 * 1. A file of text or JSON Lines is only added to, so that the processes of one run can share it.
 * 2. A SARIF or JUnit file is valid after each report: it is written over the end of the document, with the end after it, under a lock
 *    of the file. A file that does not end as ours do is left alone.
 * 3. Every failure is a line that names the file; nothing is lost silently.
 */
#ifndef RF_REPORT_OUTPUT_H
#define RF_REPORT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

enum rf_format { RF_FORMAT_TEXT, RF_FORMAT_JSONL, RF_FORMAT_SARIF, RF_FORMAT_JUNIT };
struct rf_document;

/* false: there is no format of this name. */
bool rf_format_named(const char *name, enum rf_format *format);
/* NULL: the format is no document, its reports just follow each other. */
const struct rf_document *rf_format_document(enum rf_format format);

/* An empty output, whatever was there: what `-o FILE` means at the start of a run. */
bool rf_output_prepare(const char *path, enum rf_format format, char error[512]);
bool rf_output_append(const char *path, enum rf_format format, const char *text, size_t length, char error[512]);
bool rf_output_write(int fd, const char *text, size_t length);

#endif
