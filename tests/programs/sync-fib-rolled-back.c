// expect: none
// runs: 3
// options: sync=fib:on_race=exception:stats=1
// text: 2 updates rolled back
// A write of what two threads have read, unordered with one of them, is refused, and so is a read of a third that is unordered with
// the write before. Both leave the history as it was: reads go on, and a write after all of them is no race.
#include <redflag.h>

#include "tests/programs/order.h"

static volatile long word;

static void *one(void *unused)
{
    MUST(word == 1);
    reach(1);
    await(3);
    MUST(word == 1); /* would race with the write, had it happened */
    reach(4);
    return unused;
}

static void *two(void *unused)
{
    volatile int caught = 0;
    await(1);
    MUST(word == 1);
    reach(2);
    redflag_try {
        word = 2; /* ordered after its own read, not after the other's */
    } redflag_catch (race) {
        caught = 1;
        MUST(race->address == &word);
    }
    MUST(caught);
    reach(3);
    return unused;
}

static pthread_t third;

static void *late(void *unused)
{
    volatile int caught = 0;
    await(6);
    redflag_try {
        MUST(word == 7);
    } redflag_catch (race) {
        caught = 1;
        MUST(race->address == &word);
    }
    MUST(caught);
    reach(7);
    return unused;
}

static void *reads(void *unused)
{
    MUST(word == 7);
    arrive();
    await(7);
    return unused;
}

int main(void)
{
    pthread_t a, b;
    word = 1;
    run_both(one, two);
    MUST(!pthread_create(&third, NULL, late, NULL)); /* knows nothing of what follows */
    word = 7;
    MUST(!pthread_create(&a, NULL, reads, NULL));
    MUST(!pthread_create(&b, NULL, reads, NULL));
    await(6); /* both have read: Shared */
    pthread_join(third, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    word = 8;
    return 0;
}
