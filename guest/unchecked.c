/* See guest/unchecked.h. */
#include "guest/unchecked.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "guest/memory.h"
#include "guest/options.h"
#include "guest/system.h"

#define LARGEST (64ul << 20)

static const char *list;
static size_t removed_calls, all_calls;

/* The text that both begin with ends where? */
static size_t common(const char *text, const char *beginning)
{
    size_t i = 0;
    while (beginning[i] && text[i] == beginning[i])
        i++;
    return beginning[i] ? 0 : i;
}

static const char own[] = "/proc/self/fd/";

/* A descriptor that `redflag run` has left open for us, and for nobody else. */
static void close_own(const char *name)
{
    size_t i = common(name, own);
    long number = 0;
    if (!i)
        return;
    for (; name[i] >= '0' && name[i] <= '9' && number < 1 << 20; i++)
        number = number * 10 + name[i] - '0';
    RF_SYSCALL(SYS_close, number);
}

/* What a program starts has the variable, but not the descriptor: another file may be there. */
static bool is_gone(const char *name)
{
    char target[64] = "";
    if (!common(name, own))
        return false;
    RF_SYSCALL(SYS_readlink, name, target, sizeof target - 1);
    return !common(target, "/memfd:redflag-unchecked");
}

/* Every word has offsets. */
static bool is_right(const char *text)
{
    for (;;) {
        bool offset = false;
        while (*text == ' ')
            text++;
        if (!*text)
            return true;
        for (; *text && *text != ' '; text++)
            offset |= *text == '+';
        if (!offset)
            return false;
    }
}

static const char *read_list(const char *name)
{
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC), got;
    if (fd < 0)
        rf_die("unchecked=%s: the file cannot be read (error %d)", name, (int)-fd);
    char *text = rf_reserve(LARGEST);
    size_t used = 0;
    if (!text)
        rf_die("unchecked=%s: no memory", name);
    while ((got = RF_SYSCALL(SYS_read, fd, text + used, LARGEST - 1 - used)) > 0)
        used += (size_t)got;
    RF_SYSCALL(SYS_close, fd);
    if (got < 0 || used == LARGEST - 1)
        rf_die("unchecked=%s: %s", name, got < 0 ? "the file cannot be read" : "the file is too long");
    for (size_t i = 0; i < used; i++)
        if (text[i] == '\n' || text[i] == '\r' || text[i] == '\t')
            text[i] = ' ';
    if (!is_right(text))
        rf_die("unchecked=%s: not a list of BUILD-ID+OFFSET+OFFSET; names become one by `redflag run --unchecked`", name);
    close_own(name);
    return text;
}

const char *rf_unchecked(void)
{
    if (!list) {
        list = rf_options.unchecked[0] && !is_gone(rf_options.unchecked) ? read_list(rf_options.unchecked) : "";
        if (list[0] && !rf_options.patch_calls)
            rf_die("unchecked=%s needs patch_calls=1", rf_options.unchecked);
    }
    return list;
}

void rf_unchecked_count(unsigned removed, unsigned all)
{
    removed_calls += removed;
    all_calls += all;
}

void rf_unchecked_statistics(void)
{
    if (rf_options.stats && rf_unchecked()[0])
        rf_say("unchecked: %zu of %zu sites are not looked at", removed_calls, all_calls);
}
