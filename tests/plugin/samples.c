/* What is left of the checks of small functions: each line `fewer:` is a function and its hooks, in the order of the text. Where the passes
 * of `redflag cc --inline` leave something else a line `clang:` stands before it. */
#include <stdint.h>
#include <string.h>

struct all {
    uint32_t a, b;
    uint8_t c[4];
    uint16_t d;
    uint64_t e;
};

void unknown(void);
static __attribute__((noinline)) uint32_t quiet(const uint32_t *x)
{
    return *x + 1;
}

/* -- loops -- */

/* fewer: sums read_range */
uint64_t sums(const uint32_t *x, int n)
{
    uint64_t all = 0;
    for (int i = 0; i < n; i++)
        all += x[i];
    return all;
}

/* clang counts in 32 bits here, as if to wrap. */
/* clang: falls write2 */
/* fewer: falls write_range */
void falls(uint16_t *x, int n)
{
    for (int i = n - 1; i >= 0; i--)
        x[i] = (uint16_t)i;
}

/* fewer: stays read4 write1 */
void stays(const uint32_t *x, uint8_t *y, int n)
{
    for (int i = 0; i < n; i++)
        y[2 * i] = (uint8_t)*x;
}

/* One way out too many. */
/* fewer: finds read4 */
int finds(const uint32_t *x, int n)
{
    for (int i = 0; i < n; i++)
        if (x[i] == 7)
            return i;
    return -1;
}

/* Not every time. */
/* fewer: some read1 read4 */
uint64_t some(const uint32_t *x, const uint8_t *which, int n)
{
    uint64_t all = 0;
    for (int i = 0; i < n; i++)
        if (which[2 * i])
            all += x[i];
    return all;
}

/* fewer: waits read4 */
uint64_t waits(const uint32_t *x, int n)
{
    uint64_t all = 0;
    for (int i = 0; i < n; i++) {
        all += x[i];
        unknown();
    }
    return all;
}

/* fewer: acquires atomic32_load read4 */
uint64_t acquires(const uint32_t *x, const uint32_t *ready)
{
    uint64_t all = 0;
    for (int i = 0; i < 5; i++)
        if (__atomic_load_n(ready, __ATOMIC_ACQUIRE))
            all += x[i];
    return all;
}

/* A function that may not come back. */
static __attribute__((noinline)) void ends(int now)
{
    if (now)
        __builtin_trap();
}

/* fewer: perhaps write1 */
void perhaps(uint8_t *x, int n)
{
    for (int i = 0; i < n; i++) {
        ends(i == 3);
        x[i] = 1;
    }
}

static __attribute__((noinline)) void stays_there(int now)
{
    if (now)
        for (;;)
            ;
}

/* fewer: forever write1 */
void forever(uint8_t *x, int n)
{
    for (int i = 0; i < n; i++) {
        stays_there(i == 3);
        x[i] = 1;
    }
}

/* The outer loop ends; the inner one need not, but shares its head and its end with it once clang has optimised. */
/* clang: may_stay write1 read1 */
/* fewer: may_stay read1 write1 read1 */
static __attribute__((noinline)) void may_stay(uint8_t *x, unsigned stay)
{
    unsigned at = 1;
    do {
        for (;;) {
            x[at & 3] = (uint8_t)(x[at & 3] & stay);
            at = at * 5 + 1;
            if (!x[at & 3])
                break;
        }
        at += 7;
    } while (at & 64);
}

/* fewer: forever_too write1 */
void forever_too(uint8_t *x, uint8_t *y, int n)
{
    for (int i = 0; i < n; i++) {
        may_stay(y, i == 3 ? 255 : 0);
        x[i] = 1;
    }
}

/* One way out too many, but the same bytes from the first round on. */
/* clang: finds_same read4 read1 */
/* fewer: finds_same read4 read1 */
int finds_same(const uint8_t *x, const uint32_t *what)
{
    for (int i = 0;; i++) {
        if (*what == (uint32_t)i)
            return 1;
        if (x[i] == 7)
            return i;
    }
}

/* -- repeated ones -- */

/* fewer: again read4 write1 */
uint32_t again(const struct all *x, uint8_t *y)
{
    uint32_t one = x->a;
    *y = 1;
    return one + x->a;
}

/* fewer: after read4 read4 */
uint32_t after(const struct all *x)
{
    uint32_t one = x->a;
    unknown();
    return one + x->a;
}

/* Its read of *x becomes that of the caller, with gcc. */
/* clang: quiet read4 */
/* fewer: quiet */
/* clang: behind_quiet read4 write1 */
/* fewer: behind_quiet read4 write1 read4 */
uint32_t behind_quiet(const uint32_t *x, const uint32_t *y, uint8_t *z)
{
    uint32_t one = *y;
    *z = 1;
    one += quiet(x);
    return one + *y;
}

/* fewer: across_assembly read4 read4 */
uint32_t across_assembly(const struct all *x)
{
    uint32_t one = x->a;
    __asm__ volatile("" ::: "memory");
    return one + x->a;
}

/* fewer: across_volatile read4 write1 read4 read4 */
uint32_t across_volatile(const struct all *x, volatile uint32_t *y, uint8_t *z)
{
    uint32_t one = x->a;
    *z = 1;
    while (!*y)
        ;
    return one + x->a;
}

/* fewer: written write4 write1 */
uint32_t written(struct all *x, uint8_t *y)
{
    x->a = 1;
    *y = 2;
    return x->a;
}

/* fewer: both_ways read4 write1 write1 */
uint32_t both_ways(const struct all *x, uint8_t *y, int which)
{
    uint32_t one = 0;
    if (which)
        one = x->a * 5, *y = 3;
    else
        one = x->a / 3, y[1] = 4;
    return one + x->a;
}

/* fewer: one_way write4 write1 read4 */
uint32_t one_way(struct all *x, uint8_t *y, int which)
{
    if (which)
        x->a = (uint32_t)which;
    *y = 3;
    return x->a;
}

/* -- neighbours -- */

/* fewer: four unaligned_read4 */
int four(const uint8_t *x)
{
    return x[0] + x[2] * 3 + x[1] + x[3];
}

/* Which may wrap. */
/* fewer: four_wrap read1 read1 read1 read1 */
int four_wrap(const uint8_t *x, uint32_t i)
{
    return x[i] + x[i + 1] * 3 + x[i + 2] + x[i + 3];
}

/* fewer: four_not unaligned_read4 */
int four_not(const uint8_t *x, int i)
{
    return x[i] + x[i + 1] * 3 + x[i + 2] + x[i + 3];
}

/* fewer: four_about read1 read1 read1 read1 */
int four_about(const uint8_t *x, long i, long n)
{
    return x[n - i] + x[n - i + 1] * 3 + x[n + i + 2] + x[n + i + 3];
}

/* A report would name a line that is far from the access. */
/* fewer: spread read1 read1 read1 read1 */
int spread(const uint8_t *x)
{
    int all = x[0];
    /* one */
    /* two */
    /* three */
    all += x[1] * 3;
    /* one */
    /* two */
    /* three */
    all += x[2] * 5;
    /* one */
    /* two */
    /* three */
    return all + x[3] * 7;
}

/* fewer: pair unaligned_read8 */
uint32_t pair(const struct all *x)
{
    return x->a + x->b;
}

/* fewer: far read4 read8 */
uint64_t far(const struct all *x)
{
    return x->a + x->e;
}

/* fewer: copied unaligned_read8 */
uint64_t copied(const uint8_t *x)
{
    uint64_t y;
    memcpy(&y, x + 3, sizeof y);
    return y;
}

/* -- prefetches: the history's, too -- */

/* fewer: ahead write4 */
void ahead(uint32_t *x)
{
    __builtin_prefetch(x + 64);
    *x = 1;
}
