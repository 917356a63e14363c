// expect: race
// runs: 10
// An unaligned access of a vector writes all of its 16 bytes, the last ones, too, which lie in a third granule.
#include <emmintrin.h>

#include "tests/programs/order.h"

static char shared[64] __attribute__((aligned(64)));

NOINLINE void access_all(char *at)
{
    _mm_storeu_si128((__m128i *)at, _mm_set1_epi8(3));
}

static void *one(void *unused)
{
    access_all(shared + 4);
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    (void)*(volatile char *)(shared + 18);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
