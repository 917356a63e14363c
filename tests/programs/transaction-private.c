// expect: none
// compilers: gcc
// flags: -fgnu-tm
// runs: 3
// stock: libitm's own synchronisation is invisible to it
/* Data handed over and taken back by a flag that only transactions touch; memory from and to the heap inside them. */
#include <string.h>

#include "tests/programs/order.h"

static int turn, plain;
static char *block;

static void play(int me)
{
    for (int i = 0; i < 300; i++) {
        int mine = 0;
        while (!mine)
            __transaction_atomic {
                mine = turn == me;
            }
        plain++;
        __transaction_atomic {
            char *fresh = malloc(40);
            fresh[3] = (char)i;
            free(block);
            block = fresh;
            turn = !me;
        }
    }
}

static void *first(void *unused)
{
    play(0);
    return unused;
}

static void *second(void *unused)
{
    play(1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    MUST(plain == 600 && block[3] == (char)299);
    free(block);
    return 0;
}
