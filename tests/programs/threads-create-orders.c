// expect: none
// runs: 10
// What a thread did before it created another comes before all that one does; joining orders the way back.
#include "tests/programs/order.h"

static int before, inside, deep;

static void *leaf(void *unused)
{
    MUST(before == 1 && inside == 2);
    deep = 3;
    return unused;
}

static void *work(void *unused)
{
    pthread_t child;
    MUST(before == 1);
    inside = 2;
    pthread_create(&child, NULL, leaf, NULL);
    pthread_join(child, NULL);
    MUST(deep == 3);
    return unused;
}

int main(void)
{
    for (int i = 0; i < 50; i++) {
        pthread_t child;
        before = 1;
        inside = deep = 0;
        pthread_create(&child, NULL, work, NULL);
        pthread_join(child, NULL);
        MUST(inside == 2 && deep == 3);
    }
    return 0;
}
