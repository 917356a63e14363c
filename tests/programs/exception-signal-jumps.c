// expect: race
// options: on_race=signal:race_signal=12
/* A handler that leaves by siglongjmp() is done: later races come, however deep on the stack, and on an alternate stack as well. */
#include <redflag.h>

#include <signal.h>

#include "tests/programs/order.h"

int x[4]; /* not static, so that its writes stay */
static char stack[65536];
static volatile int times;
static sigjmp_buf away;

static void handle(int signal)
{
    (void)signal;
    times++;
    x[3] = 1; /* what it does itself is not looked at */
    siglongjmp(away, 1);
}

static NOINLINE void write_deeply(int depth, int *to)
{
    volatile char space[256];
    space[0] = space[255] = 1;
    if (depth)
        write_deeply(depth - 1, to);
    else
        *to = 2;
    space[1] = 2;
}

static void *first(void *unused)
{
    for (int i = 0; i < 4; i++)
        x[i] = -1;
    reach(1);
    return unused;
}

static void race_on(int which, int depth)
{
    if (!sigsetjmp(away, 1)) {
        write_deeply(depth, &x[which]);
        MUST(0);
    }
    MUST(times == which + 1);
}

static void *second(void *unused)
{
    struct sigaction action = { .sa_handler = handle };
    stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
    await(1);
    MUST(sigaction(SIGUSR2, &action, NULL) == 0);
    race_on(0, 0);
    race_on(1, 20);
    action.sa_flags = SA_ONSTACK;
    MUST(sigaltstack(&alternate, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
    race_on(2, 40);
    return unused;
}

int main(void)
{
    run_both(first, second);
    MUST(x[0] == -1 && x[1] == -1 && x[2] == -1 && x[3] == 1);
    return 0;
}
