// expect: none
// runs: 10
// Destructors of keys run in the thread, before it is joined.
#include "tests/programs/order.h"

static pthread_key_t key;
static int destroyed, value[4];

static void destroy(void *place)
{
    *(int *)place = -1;
    destroyed++;
}

static void *work(void *place)
{
    *(int *)place = 5;
    pthread_setspecific(key, place);
    return NULL;
}

int main(void)
{
    MUST(pthread_key_create(&key, destroy) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, &value[i]);
        pthread_join(thread, NULL);
        MUST(value[i] == -1);
    }
    MUST(destroyed == 4);
    pthread_key_delete(key);
    return 0;
}
