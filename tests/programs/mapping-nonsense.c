// expect: none
// munmap() of what the kernel refuses takes no time and harms nothing.
#include "tests/programs/order.h"

#include <sys/mman.h>

int main(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile size_t huge = (size_t)1 << 60, minus = (size_t)-10000;
    MUST(page != MAP_FAILED);
    *page = 1;
    MUST(munmap(page, huge) != 0 && munmap(page, minus) != 0 && munmap(page, 0) != 0 && munmap(page + 1, 4096) != 0);
    MUST(*page == 1);
    return munmap(page, 4096);
}
