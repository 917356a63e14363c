// expect: none
// runs: 10
// stock: crashes on thrd_create
// Creation, join and a mutex of C11.
#include <threads.h>

#include "tests/programs/order.h"

static mtx_t mutex;
static int counter;

static int work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        mtx_lock(&mutex);
        counter++;
        mtx_unlock(&mutex);
    }
    return 5;
}

int main(void)
{
    thrd_t threads[3];
    MUST(mtx_init(&mutex, mtx_plain) == thrd_success);
    counter = 0;
    for (int i = 0; i < 3; i++)
        MUST(thrd_create(&threads[i], work, NULL) == thrd_success);
    for (int i = 0; i < 3; i++) {
        int result = 0;
        MUST(thrd_join(threads[i], &result) == thrd_success && result == 5);
    }
    MUST(counter == 6000);
    mtx_destroy(&mutex);
    return 0;
}
