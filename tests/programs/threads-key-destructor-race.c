// expect: race
// runs: 10
// race-at: destroy reader
// A destructor of a key races like other code of its thread.
#include "tests/programs/order.h"

static pthread_key_t key;
int shared, copy;

NOINLINE void destroy(void *unused)
{
    shared = 1;
    (void)unused;
    reach(1);
}

NOINLINE void reader(void)
{
    copy = shared;
}

static void *work(void *unused)
{
    pthread_setspecific(key, &shared);
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_key_create(&key, destroy);
    pthread_create(&thread, NULL, work, NULL);
    await(1);
    reader();
    pthread_join(thread, NULL);
    return 0;
}
