// expect: none
// runs: 10
// Only as much of a text is read as the precision says; numbered arguments are found.
#include "tests/programs/order.h"

#include <string.h>

static char text[16] = "abcdef";

static NOINLINE void *writes(void *unused)
{
    text[3] = 'X';
    reach(1);
    return unused;
}

static NOINLINE void *prints(void *unused)
{
    char line[100];
    await(1);
    snprintf(line, sizeof line, "%.3s", text);
    MUST(!strcmp(line, "abc"));
    snprintf(line, sizeof line, "%.*s", 2, text);
    MUST(!strcmp(line, "ab"));
    snprintf(line, sizeof line, "%2$.2s %1$d", 5, text);
    MUST(!strcmp(line, "ab 5"));
    return unused;
}

int main(void)
{
    run_both(writes, prints);
    return 0;
}
