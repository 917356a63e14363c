/* See report/output.h. */
#include "report/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/writers.h"

bool rf_format_named(const char *name, enum rf_format *format)
{
    static const char *const names[] = { "text", "jsonl", "sarif", "junit" };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *format = (enum rf_format)i;
            return true;
        }
    return false;
}

const struct rf_document *rf_format_document(enum rf_format format)
{
    return format == RF_FORMAT_SARIF ? &rf_sarif : format == RF_FORMAT_JUNIT ? &rf_junit : NULL;
}

/* The program may have made its end of a pipe or a terminal non-blocking. */
bool rf_output_write(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t wrote = write(fd, text, length);
        if (wrote < 0 && errno == EAGAIN) {
            struct pollfd ready = { fd, POLLOUT, 0 };
            poll(&ready, 1, 1000);
            continue;
        }
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return false;
        text += wrote;
        length -= (size_t)wrote;
    }
    return true;
}

static bool failed(const char *path, int fd, char error[512])
{
    snprintf(error, 512, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return false;
}

/* An empty one when `report` is NULL. */
static char *whole_document(const struct rf_document *document, const char *report, size_t length, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (!out)
        return NULL;
    document->begin(out);
    if (report)
        fprintf(out, "\n%.*s", (int)length, report);
    fputs(document->end, out);
    fclose(out);
    return text;
}

bool rf_output_prepare(const char *path, enum rf_format format, char error[512])
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed(path, -1, error);
    const struct rf_document *document = rf_format_document(format);
    if (document) {
        size_t size;
        char *text = whole_document(document, NULL, 0, &size);
        bool wrote = text && rf_output_write(fd, text, size);
        free(text);
        if (!wrote)
            return failed(path, fd, error);
    }
    return close(fd) == 0 || failed(path, -1, error);
}

/* Invariant 2. */
static bool append_inside(const struct rf_document *document, int fd, const char *path, const char *text, size_t length,
                          char error[512])
{
    const size_t end = strlen(document->end);
    char tail[64] = "";
    struct stat facts;
    size_t size;
    if (flock(fd, LOCK_EX) != 0 || fstat(fd, &facts) != 0)
        return failed(path, fd, error);
    char *whole = NULL;
    off_t at = 0;
    if (facts.st_size == 0) {
        whole = whole_document(document, text, length, &size);
    } else {
        at = facts.st_size - (off_t)end;
        if (at < 2 || pread(fd, tail, end + 1, at - 1) != (ssize_t)end + 1 || memcmp(tail + 1, document->end, end) != 0) {
            snprintf(error, 512, "%s: not a %s file that redflag wrote; it is left as it is", path, document->name);
            close(fd);
            return false;
        }
        FILE *out = open_memstream(&whole, &size);
        if (out) {
            fprintf(out, "%s\n%.*s%s", tail[0] == document->before_first ? "" : document->between, (int)length, text,
                    document->end);
            fclose(out);
        }
    }
    bool wrote = whole && lseek(fd, at, SEEK_SET) == at && rf_output_write(fd, whole, size);
    if (!wrote && whole) { /* the disk is full: back to what was good */
        int cause = errno;
        if (ftruncate(fd, at) == 0 && at && pwrite(fd, document->end, end, at) < 0)
            cause = errno;
        errno = cause;
    }
    free(whole);
    if (!wrote)
        return failed(path, fd, error);
    return close(fd) == 0 || failed(path, -1, error);
}

bool rf_output_append(const char *path, enum rf_format format, const char *text, size_t length, char error[512])
{
    const struct rf_document *document = rf_format_document(format);
    int fd = open(path, (document ? O_RDWR : O_WRONLY | O_APPEND) | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed(path, -1, error);
    if (document)
        return append_inside(document, fd, path, text, length, error);
    if (!rf_output_write(fd, text, length))
        return failed(path, fd, error);
    return close(fd) == 0 || failed(path, -1, error);
}
