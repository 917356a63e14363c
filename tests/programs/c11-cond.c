// expect: none
// runs: 10
// stock: crashes on thrd_create
// Conditions, timed waits and trylocks of C11.
#include <threads.h>
#include <time.h>

#include "tests/programs/order.h"

static mtx_t mutex;
static cnd_t changed;
static int ready, data;

static int work(void *unused)
{
    (void)unused;
    data = 7;
    mtx_lock(&mutex);
    ready = 1;
    cnd_broadcast(&changed);
    mtx_unlock(&mutex);
    return 0;
}

int main(void)
{
    thrd_t thread;
    struct timespec soon;
    mtx_init(&mutex, mtx_timed | mtx_recursive);
    cnd_init(&changed);
    thrd_create(&thread, work, NULL);
    mtx_lock(&mutex);
    while (!ready)
        cnd_wait(&changed, &mutex);
    MUST(data == 7);
    timespec_get(&soon, TIME_UTC);
    MUST(cnd_timedwait(&changed, &mutex, &soon) == thrd_timedout);
    MUST(mtx_trylock(&mutex) == thrd_success);
    mtx_unlock(&mutex);
    MUST(mtx_timedlock(&mutex, &soon) == thrd_success);
    mtx_unlock(&mutex);
    mtx_unlock(&mutex);
    thrd_join(thread, NULL);
    cnd_destroy(&changed);
    mtx_destroy(&mutex);
    return 0;
}
