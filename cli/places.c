/* See cli/places.h. */
#include "cli/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool try(struct rf_places *places, const char *directory, const char *lib, const char *tsan, const char *include)
{
    char joined[2 * PATH_MAX];
    snprintf(joined, sizeof joined, "%s/%s", directory, lib);
    if (!realpath(joined, places->lib))
        return false;
    snprintf(joined, sizeof joined, "%s/%s", directory, tsan);
    if (!realpath(joined, places->tsan))
        return false;
    snprintf(joined, sizeof joined, "%s/%s", places->lib, RF_RT_NAME);
    if (strlen(joined) >= sizeof places->library || access(joined, R_OK) != 0)
        return false;
    memcpy(places->library, joined, strlen(joined) + 1);
    snprintf(joined, sizeof joined, "%s/../chase", places->tsan);
    if (!realpath(joined, places->chase))
        places->chase[0] = 0;
    snprintf(joined, sizeof joined, "%s/%s", directory, include);
    if (!realpath(joined, places->include))
        places->include[0] = 0;
    return true;
}

bool rf_cli_places(struct rf_places *places, const char *who)
{
    ssize_t length = readlink("/proc/self/exe", places->command, sizeof places->command - 1);
    if (length <= 0) {
        if (who)
            fprintf(stderr, "%s: /proc/self/exe cannot be read, so the runtime beside it is not found; is /proc mounted?\n",
                    who);
        return false;
    }
    places->command[length] = 0;
    char directory[PATH_MAX];
    memcpy(directory, places->command, (size_t)length + 1);
    *strrchr(directory, '/') = 0;
    if (try(places, directory, "lib", "lib/tsan", "include") ||
        try(places, directory, "../lib", "../lib/redflag/tsan", "../include"))
        return true;
    if (who)
        fprintf(stderr, "%s: the runtime %s is neither in %s/lib nor in %s/../lib\n", who, RF_RT_NAME, directory, directory);
    return false;
}

bool rf_cli_plugin(const struct rf_places *places, const char *version, bool fewer, char *path, size_t size)
{
    int length = snprintf(path, size, "%s/redflag/redflag-%sgcc-%s.so", places->lib, fewer ? "" : "copies-", version);
    return length > 0 && (size_t)length < size && access(path, R_OK) == 0;
}
