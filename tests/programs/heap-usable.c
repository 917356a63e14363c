// expect: none
// runs: 3
// All of what malloc_usable_size() tells may be used, and stays when the block moves.
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    for (size_t size = 1; size < 300000; size += 1 + size / 7) {
        unsigned char *block = malloc(size);
        size_t usable = malloc_usable_size(block);
        if (usable < size)
            return 1;
        memset(block, 0x5a, usable);
        block = realloc(block, usable + 100);
        for (size_t i = 0; i < usable; i++)
            if (block[i] != 0x5a)
                return 2;
        free(block);
    }
    return 0;
}
