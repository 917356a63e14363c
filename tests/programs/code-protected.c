// expect: none
/* Calls of hooks were changed in the text; but at no time that the program runs can anything be both written and executed. */
#include <string.h>

#include "tests/programs/order.h"

static long looked;

static int look(void)
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    MUST(maps);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, " rwx")) {
            fputs(line, stderr);
            found++;
        }
    fclose(maps);
    looked++; /* a site, for tests/cli/chase.sh */
    return found;
}

static void *work(void *unused)
{
    MUST(look() == 0);
    return unused;
}

int main(void)
{
    pthread_t thread;
    MUST(look() == 0);
    MUST(pthread_create(&thread, NULL, work, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    return 0;
}
