// expect: none
// runs: 10
// Memory that one thread freed and another got is not a race: malloc orders nothing, and needs not.
#include "tests/programs/order.h"

static void *work(void *unused)
{
    for (int i = 0; i < 3000; i++) {
        size_t size = (size_t)(i % 200 + 1);
        char *block = malloc(size);
        for (size_t j = 0; j < size; j++)
            block[j] = (char)j;
        for (size_t j = 0; j < size; j++)
            MUST(block[j] == (char)j);
        free(block);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
