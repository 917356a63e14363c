// expect: none
// options: on_race=exception
// text: all is well
/* guard() throws; from there on objects are destroyed and exceptions are caught as usual. */
#include <redflag.h>

#include "tests/programs/order.h"

static int x;
static int destroyed;

struct Counted {
    ~Counted() { destroyed++; }
};

static NOINLINE void write_it(int value)
{
    x = value;
}

static NOINLINE void inner(int value)
{
    Counted counted;
    redflag::guard([&] { write_it(value); });
}

static void *first(void *unused)
{
    x = 1;
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    bool caught = false;
    await(1);
    try {
        Counted counted;
        inner(2);
    } catch (const redflag::data_race &thrown) {
        caught = thrown.race.address == &x && thrown.race.now.kind == REDFLAG_WRITE;
    }
    MUST(caught && destroyed == 2);
    try {
        redflag::guard([] { throw 5; }); /* others pass */
        MUST(false);
    } catch (int five) {
        MUST(five == 5);
    }
    redflag_try {
        write_it(3);
        MUST(false);
    } redflag_catch (race) {
        MUST(race->address == &x);
    }
    return unused;
}

int main()
{
    run_both(first, second);
    MUST(x == 1);
    puts("all is well");
    return 0;
}
