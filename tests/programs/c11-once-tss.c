// expect: none
// runs: 10
// stock: crashes on thrd_create
// call_once, thread-specific storage with destructors, thrd_exit and detached threads of C11.
#include <threads.h>

#include "tests/programs/order.h"

static once_flag once = ONCE_FLAG_INIT;
static tss_t key;
static mtx_t mutex;
static int made, destroyed, gone;

static void make(void)
{
    made = 1;
}

static void destroy(void *value)
{
    mtx_lock(&mutex);
    destroyed += *(int *)value;
    mtx_unlock(&mutex);
    free(value);
}

static int work(void *unused)
{
    (void)unused;
    call_once(&once, make);
    MUST(made == 1);
    int *value = malloc(sizeof *value);
    *value = 1;
    tss_set(key, value);
    MUST(tss_get(key) == value);
    thrd_exit(9);
}

static int leave(void *unused)
{
    (void)unused;
    mtx_lock(&mutex);
    gone = 1;
    mtx_unlock(&mutex);
    return 0;
}

int main(void)
{
    thrd_t threads[3], other;
    mtx_init(&mutex, mtx_plain);
    MUST(tss_create(&key, destroy) == thrd_success);
    for (int i = 0; i < 3; i++)
        thrd_create(&threads[i], work, NULL);
    for (int i = 0; i < 3; i++) {
        int result;
        thrd_join(threads[i], &result);
        MUST(result == 9);
    }
    MUST(destroyed == 3);
    thrd_create(&other, leave, NULL);
    thrd_detach(other);
    for (int there = 0; !there; thrd_yield()) {
        mtx_lock(&mutex);
        there = gone;
        mtx_unlock(&mutex);
    }
    return 0;
}
