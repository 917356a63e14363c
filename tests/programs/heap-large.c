// expect: none
// runs: 10
// Large blocks, which go back to the kernel, and come again for another thread.
#include "tests/programs/order.h"

static void *work(void *unused)
{
    for (int i = 0; i < 20; i++) {
        size_t size = (size_t)(i + 1) << 19;
        char *block = malloc(size);
        for (size_t j = 0; j < size; j += 4096)
            block[j] = (char)j;
        block = realloc(block, size * 2);
        block[size * 2 - 1] = 1;
        free(block);
    }
    return unused;
}

int main(void)
{
    run_both(work, work);
    return 0;
}
