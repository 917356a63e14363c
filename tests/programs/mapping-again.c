// expect: none
// runs: 10
// Memory that one thread unmapped and another mapped again is new.
#include "tests/programs/order.h"

#include <sys/mman.h>

enum { SIZE = 1 << 20 };
static char *place;

static NOINLINE void *first(void *unused)
{
    await(1); /* the other's stack must not come to lie there */
    char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < SIZE; i += 64)
        p[i] = 1;
    __asm__ volatile("mov %1, %0" : "=m"(place) : "r"(p));
    MUST(munmap(p, SIZE) == 0);
    reach(2);
    await(3);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    char *p, *again;
    reach(1);
    await(2);
    __asm__ volatile("mov %1, %0" : "=r"(p) : "m"(place));
    again = mmap(p, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    MUST(again == p);
    for (int i = 0; i < SIZE; i += 64)
        MUST(p[i]++ == 0);
    reach(3);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
