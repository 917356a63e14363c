// expect: none
// runs: 10
// stock: reports it
// A handler that runs because the thread itself raised the signal interrupts nothing: it may call what it likes.
#include "tests/programs/order.h"

#include <signal.h>
#include <string.h>

static void *block;

static NOINLINE void handler(int sig)
{
    block = malloc((size_t)sig);
    printf("handled\n");
}

int main(void)
{
    signal(SIGUSR1, handler);
    MUST(raise(SIGUSR1) == 0 && block);
    free(block);
    return 0;
}
