// expect: race
// runs: 10
// race-at: converts
// stock: does not know strtol
// A number in text is read up to the character behind it.
#include "tests/programs/order.h"

static char text[16] = "12345;";

static NOINLINE void *writes(void *unused)
{
    text[4] = '0';
    reach(1);
    return unused;
}

static NOINLINE void *converts(void *unused)
{
    char *end;
    await(1);
    MUST(strtol(text, &end, 10) == 12340 && end == text + 5);
    return unused;
}

int main(void)
{
    run_both(writes, converts);
    return 0;
}
