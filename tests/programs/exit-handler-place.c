// expect: race
// runs: 10
// race-at: handler install
// text: at_exit_callback_installed_at
// A report from an exit handler shows where it was registered.
#include "tests/programs/order.h"

int shared; /* not static: the compiler must keep the writes */

static NOINLINE void *other(void *unused)
{
    shared = 1;
    reach(1);
    return unused;
}

static NOINLINE void handler(void)
{
    shared = 2;
}

static NOINLINE void install(void)
{
    atexit(handler);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

int main(void)
{
    pthread_t thread;
    install();
    pthread_create(&thread, NULL, other, NULL);
    pthread_detach(thread);
    await(1);
    return 0;
}
