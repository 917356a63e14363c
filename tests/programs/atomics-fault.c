// expect: none
// runs: 10
// Atomic operations on memory that is not there yet: the handler jumps away, and later they work.
#include "tests/programs/order.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

static sigjmp_buf back;

static NOINLINE void leave(int sig)
{
    siglongjmp(back, sig);
}

static void *update(void *value)
{
    atomic_fetch_add((atomic_int *)value, 1);
    return NULL;
}

int main(void)
{
    atomic_int *value = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(value != MAP_FAILED && signal(SIGSEGV, leave) != SIG_ERR);
    for (volatile int i = 0; i < 100; i++)
        if (!sigsetjmp(back, 1)) {
            if (i % 2)
                atomic_store(value, 1);
            else
                atomic_fetch_add(value, 1);
            MUST(!"left");
        }
    MUST(mprotect(value, 4096, PROT_READ | PROT_WRITE) == 0);
    atomic_store(value, 1);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, update, value) == 0);
    update(value);
    MUST(pthread_join(thread, NULL) == 0);
    MUST(atomic_load(value) == 3);
    return 0;
}
