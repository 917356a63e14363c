// expect: race
// options: on_race=exception
// reports: 1
// race-at: second
// text: asked 4
/* The program is asked first: raise, allow, report and allow; or it leaves by a jump. */
#include <redflag.h>

#include "tests/programs/order.h"

static int x;
static _Atomic int asked; /* the handlers of several threads change it */
static jmp_buf away;

static enum redflag_choice choose(const struct redflag_race *race, void *context)
{
    MUST(race->address == &x && context == &away);
    x = -1; /* its own accesses are not looked at */
    x = 1;
    asked++;
    if (asked == 4)
        longjmp(away, 1);
    return asked == 1 ? REDFLAG_RAISE : asked == 2 ? REDFLAG_ALLOW : REDFLAG_REPORT;
}

static NOINLINE void first(void)
{
    x = 2;
}

static NOINLINE void second(void)
{
    x = 3;
}

static void *b(void *unused)
{
    volatile int caught = 0;
    (void)unused;
    await(1);
    redflag_try {
        first();
    } redflag_catch (race) {
        caught++;
    }
    MUST(caught == 1 && asked == 1);
    return NULL;
}

static void *c(void *unused)
{
    (void)unused;
    await(2);
    first(); /* allowed: then it counts as the last write */
    MUST(asked == 2);
    MUST(x == 2);
    reach(3);
    return NULL;
}

static void *d(void *unused)
{
    (void)unused;
    await(3);
    second();
    MUST(asked == 3);
    MUST(x == 3);
    reach(4);
    return NULL;
}

static void *e(void *unused)
{
    (void)unused;
    await(4);
    if (!setjmp(away)) {
        second();
        exit(98);
    }
    MUST(asked == 4);
    return NULL;
}

int main(void)
{
    void *(*work[])(void *) = { b, c, d, e };
    pthread_t threads[4];
    redflag_on_race(choose, &away);
    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, work[i], NULL) == 0);
    x = 1;
    reach(1);
    MUST(pthread_join(threads[0], NULL) == 0);
    reach(2);
    for (int i = 1; i < 4; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    printf("asked %d\n", asked);
    return 0;
}
