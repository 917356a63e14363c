// expect: none
// runs: 10
// stock: ends a program that wants too much, by default
// The whole family of malloc does what it must.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "tests/programs/order.h"

int main(void)
{
    char *a = calloc(100, 10), *b = malloc(10);
    for (int i = 0; i < 1000; i++)
        MUST(a[i] == 0);
    for (int i = 0; i < 10; i++)
        b[i] = (char)i;
    b = realloc(b, 5000);
    for (int i = 0; i < 10; i++)
        MUST(b[i] == i);
    b = realloc(b, 5);
    MUST(b[4] == 4);
    void *c = NULL;
    MUST(posix_memalign(&c, 4096, 100) == 0 && (unsigned long)c % 4096 == 0);
    void *d = aligned_alloc(64, 640), *e = memalign(256, 3), *f = valloc(10), *g = reallocarray(NULL, 7, 9);
    MUST(d && (unsigned long)d % 64 == 0 && e && (unsigned long)e % 256 == 0 && f && (unsigned long)f % 4096 == 0 && g);
    MUST(malloc_usable_size(g) >= 63);
    int *volatile error = &errno; /* clang takes it that malloc leaves errno alone */
    *error = 0;
    volatile size_t huge = (size_t)-1 / 2;
    void *volatile none = malloc(huge);
    MUST(!none && *error == ENOMEM);
    none = calloc(huge, 4);
    MUST(!none);
    none = reallocarray(NULL, huge, 4);
    MUST(!none);
    char *h = strdup("hello"), *i = strndup("hello", 2), *j = NULL;
    MUST(h[4] == 'o' && i[2] == 0 && asprintf(&j, "%d", 12345) == 5 && j[4] == '5');
    char *k = malloc(64 << 20);
    k[(64 << 20) - 1] = 1;
    void *l = malloc(0);
    free(NULL);
    void *all[] = { a, b, c, d, e, f, g, h, i, j, k, l };
    for (unsigned n = 0; n < sizeof all / sizeof *all; n++)
        free(all[n]);
    return 0;
}
