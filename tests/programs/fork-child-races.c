// expect: race
// exit: 0
// race-at: first second
// A race in a child of a fork is reported by it, and it alone ends with 66.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/order.h"

int shared;

NOINLINE void first(void)
{
    shared = 1;
}

NOINLINE void second(void)
{
    shared = 2;
}

static void *one(void *unused)
{
    first();
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    second();
    return unused;
}

int main(void)
{
    pid_t child = fork();
    if (child == 0) {
        run_both(one, two);
        exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 66);
    return 0;
}
