// expect: none
// All memory is locked: the program's, that is.
#include <errno.h>
#include <sys/mman.h>

#include "tests/programs/order.h"

int main(void)
{
    MUST(!mlockall(MCL_CURRENT | MCL_FUTURE));
    MUST(mlockall(0) == -1 && errno == EINVAL);
    char *block = malloc(1 << 20);
    MUST(block);
    block[4096] = 1;
    MUST(!munlockall());
    free(block);
    return 0;
}
