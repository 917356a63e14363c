// expect: none
// runs: 10
// Copies, moves and fills of every size and alignment, right and under a lock.
#include "tests/programs/order.h"

#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char area[700], copy[700];

static NOINLINE void *work(void *unused)
{
    for (size_t size = 0; size < 300; size += 1 + size / 7)
        for (size_t at = 0; at < 17; at++) {
            pthread_mutex_lock(&lock);
            memset(area, 1, sizeof area);
            memset(area + at, 7, size);
            memcpy(copy + 16 - at, area + at, size);
            for (size_t i = 0; i < size; i++)
                MUST(copy[16 - at + i] == 7);
            MUST(area[at + size] == 1);
            memmove(area + 1, area, 400);
            MUST(area[0] == (at ? 1 : size ? 7 : 1) && memcmp(area + 1 + at, copy + 16 - at, size) == 0);
            pthread_mutex_unlock(&lock);
        }
    return unused;
}

int main(void)
{
    run_both(work, work);
    return 0;
}
