// expect: race
// runs: 10
// An unaligned access of a vector reads all of its 16 bytes, the last ones, too, which lie in a third granule.
#include <emmintrin.h>

#include "tests/programs/order.h"

static char shared[64] __attribute__((aligned(64)));
static volatile int sink;

NOINLINE __m128i all(const char *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

static void *one(void *unused)
{
    sink = _mm_cvtsi128_si32(all(shared + 4));
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    *(volatile char *)(shared + 18) = 1;
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
