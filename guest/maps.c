/* See guest/maps.h. */
#include "guest/maps.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "guest/system.h"

static uint64_t hexadecimal(char **at)
{
    uint64_t value = 0;
    for (char *p = *at;; *at = ++p) {
        unsigned digit = (unsigned)(*p >= 'a' ? *p - 'a' + 10 : *p - '0');
        if (digit > 15 || (*p > '9' && *p < 'a'))
            return value;
        value = value * 16 + digit;
    }
}

/* begin-end access offset major:minor inode path */
static void parse(char *line, struct rf_mapping *mapping)
{
    mapping->begin = hexadecimal(&line);
    line++;
    mapping->end = hexadecimal(&line);
    line++;
    __builtin_memcpy(mapping->access, line, sizeof mapping->access);
    line += sizeof mapping->access + 1;
    mapping->offset = hexadecimal(&line);
    line++;
    mapping->major = hexadecimal(&line);
    line++;
    mapping->minor = hexadecimal(&line);
    line++;
    for (mapping->inode = 0; *line >= '0' && *line <= '9'; line++)
        mapping->inode = mapping->inode * 10 + (uint64_t)(*line - '0');
    while (*line == ' ')
        line++;
    mapping->path = line;
}

/* Looks through whole lines; what is left of the last one is moved to the beginning. True: found. */
static bool look_through(uintptr_t address, struct rf_mapping *mapping, size_t *length)
{
    char *line = mapping->text, *end = mapping->text + *length;
    for (char *p = line; p < end; p++) {
        if (*p != '\n')
            continue;
        *p = 0;
        parse(line, mapping);
        if (address >= mapping->begin && address < mapping->end)
            return true;
        line = p + 1;
    }
    *length = (size_t)(end - line);
    __builtin_memmove(mapping->text, line, *length);
    return false;
}

bool rf_mapping_at(uintptr_t address, struct rf_mapping *mapping)
{
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC), got;
    bool found = false;
    for (size_t length = 0; fd >= 0 && !found;) {
        got = RF_SYSCALL(SYS_read, fd, mapping->text + length, sizeof mapping->text - length);
        if (got <= 0)
            break;
        length += (size_t)got;
        found = look_through(address, mapping, &length);
    }
    if (fd >= 0)
        RF_SYSCALL(SYS_close, fd);
    return found;
}
