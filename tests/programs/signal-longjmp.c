// expect: none
// runs: 10
// Handlers that are left by siglongjmp, from faults, from blocking calls, from an alternate stack: thousands of times.
#include "tests/programs/order.h"

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

static sigjmp_buf back;
static int fds[2], data;

static NOINLINE void leave(int sig)
{
    siglongjmp(back, sig);
}

static NOINLINE int deep(int n, volatile int *where)
{
    int result = n ? deep(n - 1, where) : (*where = 1);
    data++;
    return result + n;
}

int main(void)
{
    static char area[1 << 16];
    stack_t stack = { .ss_sp = area, .ss_size = sizeof area };
    struct sigaction act = { .sa_handler = leave, .sa_flags = SA_ONSTACK };
    MUST(pipe(fds) == 0 && sigaltstack(&stack, NULL) == 0);
    MUST(sigaction(SIGSEGV, &act, NULL) == 0 && sigaction(SIGUSR1, &act, NULL) == 0 && sigaction(SIGALRM, &act, NULL) == 0);
    for (volatile int i = 0; i < 5000; i++) {
        int sig = sigsetjmp(back, 1);
        if (!sig) {
            if (i % 2)
                deep(i % 30, NULL);
            else
                raise(SIGUSR1);
            MUST(!"left");
        }
        MUST(sig == (i % 2 ? SIGSEGV : SIGUSR1));
    }
    if (!sigsetjmp(back, 1)) {
        char c;
        ualarm(5000, 0);
        MUST(read(fds[0], &c, 1) == 1);
    }
    MUST(data == 0);
    return 0;
}
