/* See guest/online_pairs.h. */
#include "guest/online_pairs.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "core/map.h"
#include "guest/access.h"
#include "guest/memory.h"
#include "guest/modules.h"
#include "guest/pair.h"
#include "guest/system.h"

struct kept {
    struct rf_online_race race;
    uint32_t thread;
};

static struct {
    struct rf_memory memory;
    struct rf_map sites; /* place -> number */
    struct kept *list;
    uint32_t count, cap;
} pairs;

uint32_t rf_pairs_site(uintptr_t pc)
{
    if (!pairs.sites.memory) {
        rf_memory_begin(&pairs.memory);
        rf_map_init(&pairs.sites, &pairs.memory);
    }
    uint64_t *number = rf_map_at(&pairs.sites, pc);
    if (!*number)
        *number = pairs.sites.count;
    return (uint32_t)*number;
}

void rf_pairs_keep(const struct rf_online_race *race, uint32_t thread)
{
    pairs.list = rf_grow(&pairs.memory, pairs.list, &pairs.cap, (size_t)pairs.count + 1, sizeof *pairs.list);
    pairs.list[pairs.count++] = (struct kept){ *race, thread };
}

void rf_pairs_drop(void)
{
    pairs.count = 0;
}

bool rf_pairs_next(uint32_t *at, struct rf_online_race *race, uint32_t *thread)
{
    if (*at >= pairs.count)
        return false;
    *race = pairs.list[*at].race;
    *thread = pairs.list[(*at)++].thread;
    return true;
}

/* The name of the place that a note's access was made from, and what goes behind it. Returns its length. */
static size_t name_of(uint32_t note, char end, char *to, size_t room)
{
    extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));
    uintptr_t pcs[2] = { 0, 0 };
    struct rf_image image;
    const char *name;
    char id[512];
    unsigned count = note ? rf_note_stack(note, pcs, 2) : 0;
    bool ours = count == 2 && pcs[0] - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start);
    if (!rf_modules_has(pcs[ours], &image, &name))
        return rf_format(to, room, "?+0x%zx%c", (size_t)pcs[ours], end);
    rf_pair_module_id(&image, name, id);
    return rf_format(to, room, "%s+0x%zx%c", id[0] == '/' ? id + 1 : id, (size_t)(pcs[ours] - 1 - image.base), end);
}

bool rf_pairs_write(const char *path)
{
    static char text[64 << 10];
    size_t length = 0;
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bool good = fd >= 0;
    for (uint32_t i = 0; i < pairs.count && good; i++) {
        length += name_of(pairs.list[i].race.first.note, ' ', text + length, 1024);
        length += name_of(pairs.list[i].race.note, '\n', text + length, 1024);
        if (length > sizeof text - 2048 || i + 1 == pairs.count) {
            good = RF_SYSCALL(SYS_write, fd, text, length) == (long)length;
            length = 0;
        }
    }
    if (fd >= 0)
        RF_SYSCALL(SYS_close, fd);
    return good;
}
