// expect: race
// options: suppress_equal_stacks=0
// race-at: set look
// no-text: not true
// A word is read, and up to three of its bytes are written then, as where separators in a text become zeros: who reads one of those
// races, and who reads another one does not.
#include "tests/programs/order.h"
#include <stdint.h>

#define WRITTEN_MOST 3

static union word {
    uint64_t all;
    unsigned char byte[8];
} words[8][256]; /* by the byte that is read, and those that are written */

static volatile unsigned reports; /* the compiler does not see what counts them */
static unsigned wrong;

void __tsan_on_report(void *report);
void __tsan_on_report(void *report)
{
    reports += report != 0;
}

static NOINLINE uint64_t read_all(volatile uint64_t *all)
{
    return *all;
}

static NOINLINE void set(volatile unsigned char *byte)
{
    *byte = 1;
}

static NOINLINE int look(volatile unsigned char *byte)
{
    return *byte;
}

static void *first(void *unused)
{
    uint64_t sum = 0;
    for (int at = 0; at < 8; at++)
        for (int mask = 1; mask < 256; mask++) {
            if (__builtin_popcount(mask) > WRITTEN_MOST)
                continue;
            sum += read_all(&words[at][mask].all);
            for (int i = 0; i < 8; i++)
                if (mask >> i & 1)
                    set(&words[at][mask].byte[i]);
        }
    MUST(sum == 0);
    reach(1);
    return unused;
}

static void *second(void *unused)
{
    await(1);
    for (int at = 0; at < 8; at++)
        for (int mask = 1; mask < 256; mask++) {
            if (__builtin_popcount(mask) > WRITTEN_MOST)
                continue;
            unsigned before = reports;
            int value = look(&words[at][mask].byte[at]);
            wrong += value != (mask >> at & 1) || (reports != before) != (mask >> at & 1);
        }
    return unused;
}

int main(void)
{
    run_both(first, second);
    MUST(wrong == 0);
    MUST(reports == 8 + 8 * 7 + 8 * 7 * 3);
    return 0;
}
