/* Bytes of a trace (see input.h). */
#include "trace/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file without a name, so that it vanishes with the process. -1 if there is no place for one. */
static int open_spool(void)
{
    const char *directory = getenv("TMPDIR");
    if (!directory || !*directory)
        directory = "/tmp";
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/redflag-XXXXXX", directory) >= (int)sizeof path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

bool rf_input_open(struct rf_input *input, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    *input = (struct rf_input){ .path = standard ? "standard input" : path, .fd = -1, .spool = -1 };
    input->fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (input->fd < 0 || fstat(input->fd, &status) != 0)
        return false;
    if (S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return false;
    }
    /* A standard input that someone has read from does not begin at offset 0: it is spooled like a pipe. */
    input->seekable = S_ISREG(status.st_mode) && lseek(input->fd, 0, SEEK_CUR) == 0;
    if (input->seekable)
        input->size = (uint64_t)status.st_size;
    else
        input->spool = open_spool();
    return true;
}

void rf_input_open_memory(struct rf_input *input, const void *bytes, size_t size)
{
    *input = (struct rf_input){ .path = "memory", .fd = -1, .spool = -1, .memory = bytes, .size = size, .seekable = true };
}

void rf_input_close(struct rf_input *input)
{
    if (input->fd >= 0)
        close(input->fd);
    if (input->spool >= 0)
        close(input->spool);
    input->fd = input->spool = -1;
}

static ssize_t read_fully(int fd, unsigned char *bytes, size_t count)
{
    size_t done = 0;
    while (done < count) {
        ssize_t got = read(fd, bytes + done, count - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static bool write_fully(int fd, const unsigned char *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t put = write(fd, bytes + done, count - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

static ssize_t take(struct rf_input *input, unsigned char *bytes, size_t count)
{
    if (input->fd >= 0)
        return read_fully(input->fd, bytes, count);
    uint64_t at = input->position + input->peeked_count;
    uint64_t left = input->size - at;
    if (count > left)
        count = (size_t)left;
    if (count)
        memcpy(bytes, input->memory + at, count);
    return (ssize_t)count;
}

ssize_t rf_input_peek(struct rf_input *input, unsigned char bytes[8])
{
    ssize_t got = take(input, input->peeked, sizeof input->peeked);
    if (got < 0)
        return -1;
    input->peeked_count = (size_t)got;
    memcpy(bytes, input->peeked, input->peeked_count);
    return got;
}

ssize_t rf_input_read(struct rf_input *input, void *bytes, size_t count)
{
    unsigned char *to = bytes;
    if (input->position < input->again) {
        size_t old = input->again - input->position < count ? (size_t)(input->again - input->position) : count;
        ssize_t got = rf_input_read_at(input, to, old, input->position);
        if (got < (ssize_t)old)
            return -1;
        input->position += old;
        got = count > old ? rf_input_read(input, to + old, count - old) : 0;
        return got < 0 ? -1 : (ssize_t)old + got;
    }
    size_t early = input->peeked_count < count ? input->peeked_count : count;
    memcpy(to, input->peeked, early);
    memmove(input->peeked, input->peeked + early, input->peeked_count - early);
    input->peeked_count -= early;
    input->position += early;
    ssize_t got = count > early ? take(input, to + early, count - early) : 0;
    if (got < 0)
        return -1;
    input->position += (uint64_t)got;
    size_t total = early + (size_t)got;
    if (input->spool >= 0 && !write_fully(input->spool, to, total)) {
        /* Without the copy the trace can still be read once; only a second look is refused. */
        close(input->spool);
        input->spool = -1;
    }
    return (ssize_t)total;
}

bool rf_input_rewind(struct rf_input *input)
{
    if (input->fd < 0 || (input->seekable && lseek(input->fd, 0, SEEK_SET) == 0)) {
        input->position = input->peeked_count = 0;
        return true;
    }
    if (input->spool < 0)
        return false;
    input->again = input->position > input->again ? input->position : input->again;
    input->position = 0;
    return true;
}

bool rf_input_can_read_at(const struct rf_input *input)
{
    return input->seekable || input->spool >= 0;
}

ssize_t rf_input_read_at(const struct rf_input *input, void *bytes, size_t count, uint64_t offset)
{
    if (input->fd < 0) {
        uint64_t left = offset < input->size ? input->size - offset : 0;
        if (count > left)
            count = (size_t)left;
        if (count && input->memory)
            memcpy(bytes, input->memory + offset, count);
        return (ssize_t)count;
    }
    int fd = input->seekable ? input->fd : input->spool;
    size_t done = 0;
    while (done < count) {
        ssize_t got = pread(fd, (unsigned char *)bytes + done, count - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}
