// expect: none
// runs: 10
// stock: takes a comparison to read both strings whole
// What string functions do not read is not read: behind the end, the limit, or the difference.
#include "tests/programs/order.h"

#include <string.h>

static char a[32] = "abc", b[32] = "abX", c[32] = "key=value";
size_t (*volatile length)(const char *) = strlen;
int (*volatile compare)(const char *, const char *) = strcmp;
int (*volatile compare_n)(const char *, const char *, size_t) = strncmp;
int (*volatile compare_memory)(const void *, const void *, size_t) = memcmp;
char *(*volatile find)(const char *, int) = strchr;

static NOINLINE void *writes(void *unused)
{
    a[4] = 'x';
    b[3] = 'y';
    c[5] = 'V';
    reach(1);
    return unused;
}

static NOINLINE void *reads(void *unused)
{
    await(1);
    MUST(length(a) == 3);
    MUST(compare(a, b) != 0);
    MUST(compare_n(a, b, 3) != 0);
    MUST(compare_memory(a, b, 20) != 0);
    MUST(find(c, '=') == c + 3);
    MUST(compare_n(c, "key=", 4) == 0);
    return unused;
}

int main(void)
{
    run_both(writes, reads);
    return 0;
}
