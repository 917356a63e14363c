// expect: none
// runs: 10
// A stream may be used by many threads at once: libc locks it.
#define _GNU_SOURCE
#include "tests/programs/order.h"

#include <string.h>

static FILE *f;

static NOINLINE void *prints(void *unused)
{
    char line[40];
    for (int i = 0; i < 500; i++) {
        snprintf(line, sizeof line, "line %d\n", i);
        fputs(line, f);
        fprintf(f, "%s", line);
        fwrite(line, 1, strlen(line), f);
    }
    return unused;
}

int main(void)
{
    char *line = NULL;
    size_t size = 0, lines = 0;
    f = tmpfile();
    run_both(prints, prints);
    rewind(f);
    while (getline(&line, &size, f) > 0)
        lines++;
    MUST(lines == 3000);
    free(line);
    fclose(f);
    return 0;
}
