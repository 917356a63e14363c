/* See fleet/spool.h. */
#include "fleet/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/grow.h"

#define BATCH 256 /* lines applied in one transaction */

char *rf_spool_place(void)
{
    char *place = NULL;
    const char *set = getenv("REDFLAG_SPOOL"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length = set && *set       ? asprintf(&place, "%s", set)
                 : state && *state ? asprintf(&place, "%s/redflag/spool.jsonl", state)
                                   : asprintf(&place, "%s/.local/state/redflag/spool.jsonl", home && *home ? home : ".");
    rf_check_memory(length < 0 ? NULL : place, 64);
    for (char *slash = strchr(place + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(place, 0777);
        *slash = '/';
    }
    return place;
}

static bool failed(const char *path, int fd, char error[512])
{
    snprintf(error, 512, "%.400s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return false;
}

static bool write_all(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t wrote = write(fd, text, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        text += wrote;
        length -= (size_t)wrote;
    }
    return true;
}

bool rf_spool_add(const char *path, const char *text, char error[512])
{
    char last = '\n';
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        return failed(path, fd, error);
    off_t size = lseek(fd, 0, SEEK_END);
    if (size < 0 || (size > 0 && pread(fd, &last, 1, size - 1) != 1))
        return failed(path, fd, error);
    /* Behind what a crash has cut off, a new line begins. */
    bool good = (last == '\n' || write_all(fd, "\n", 1)) && write_all(fd, text, strlen(text)) && write_all(fd, "\n", 1) &&
                fsync(fd) == 0;
    if (!good) {
        int cause = errno;
        if (ftruncate(fd, size) != 0) {
            /* the part of a line that stays is passed over when the file is read */
        }
        errno = cause;
        return failed(path, fd, error);
    }
    return close(fd) == 0 || failed(path, -1, error);
}

/* What the store refuses would be refused again: it is kept beside the spool, and the rest goes on. */
static enum rf_store_answer set_aside(const char *path, const json_t *result, struct rf_spooled *count, char error[512])
{
    char *beside = NULL, *text = json_dumps(result, JSON_COMPACT);
    rf_check_memory(text && asprintf(&beside, "%s.refused", path) > 0 ? beside : NULL, 64);
    bool good = rf_spool_add(beside, text, error);
    count->refused += good;
    free(beside);
    free(text);
    return good ? RF_STORE_DONE : RF_STORE_WRONG;
}

static enum rf_store_answer apply(struct rf_store *store, const char *path, json_t *batch, struct rf_spooled *count,
                                  char error[512])
{
    enum rf_store_answer answer = json_array_size(batch) ? rf_store_apply(store, batch) : RF_STORE_DONE;
    if (answer == RF_STORE_DONE)
        count->applied += json_array_size(batch);
    for (size_t i = 0; answer == RF_STORE_WRONG && i < json_array_size(batch); i++) {
        enum rf_store_answer one = rf_store_apply(store, json_array_get(batch, i));
        if (one == RF_STORE_WRONG)
            one = set_aside(path, json_array_get(batch, i), count, error);
        else if (one == RF_STORE_DONE)
            count->applied++;
        if (one != RF_STORE_DONE)
            return one;
        if (i + 1 == json_array_size(batch))
            answer = RF_STORE_DONE;
    }
    if (answer == RF_STORE_OUT_OF_REACH)
        snprintf(error, 512, "%s", rf_store_error(store));
    json_array_clear(batch);
    return answer;
}

static enum rf_store_answer merge(struct rf_store *store, const char *path, FILE *file, struct rf_spooled *count,
                                  char error[512])
{
    char *text = NULL;
    size_t capacity = 0;
    ssize_t length;
    json_t *batch = json_array();
    enum rf_store_answer answer = RF_STORE_DONE;
    while (answer == RF_STORE_DONE && (length = getline(&text, &capacity, file)) > 0) {
        json_t *result = text[0] == '\n' ? NULL : json_loadb(text, (size_t)length, 0, NULL);
        if (json_object_get(result, "redflag"))
            json_array_append(batch, result);
        else if (text[0] != '\n')
            count->damaged++;
        json_decref(result);
        if (json_array_size(batch) == BATCH)
            answer = apply(store, path, batch, count, error);
    }
    if (answer == RF_STORE_DONE)
        answer = apply(store, path, batch, count, error);
    json_decref(batch);
    free(text);
    return answer;
}

enum rf_store_answer rf_spool_merge(struct rf_store *store, const char *path, bool keep, struct rf_spooled *count,
                                    char error[512])
{
    memset(count, 0, sizeof *count);
    FILE *file = fopen(path, keep ? "re" : "r+e");
    if (!file) {
        if (errno == ENOENT && !keep)
            return RF_STORE_DONE;
        failed(path, -1, error);
        return RF_STORE_WRONG;
    }
    if (!keep && flock(fileno(file), LOCK_EX) != 0) {
        failed(path, -1, error);
        fclose(file);
        return RF_STORE_WRONG;
    }
    enum rf_store_answer answer = merge(store, path, file, count, error);
    if (answer == RF_STORE_DONE && !keep && ftruncate(fileno(file), 0) != 0) { /* to apply it again does no harm */
        failed(path, -1, error);
        answer = RF_STORE_WRONG;
    }
    fclose(file);
    return answer;
}
