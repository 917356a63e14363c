// expect: none
// options: on_race=exception
// runs: 5
// text: all is well
/* Blocks in one function, through calls, nested, left by break and return; the access never happens, whatever refuses it. */
#include <redflag.h>

#include <string.h>

#include "tests/programs/order.h"

static int plain, other;
static char *block, *copy;

static NOINLINE void write_deeply(int depth)
{
    if (depth)
        write_deeply(depth - 1);
    else
        plain = 7;
}

static NOINLINE int left_by_return(void)
{
    redflag_try {
        return 1;
    } redflag_catch (race) {
        return 2;
    }
    return 3;
}

static NOINLINE int left_by_jump(void)
{
    jmp_buf here;
    if (setjmp(here))
        return 1;
    redflag_try {
        longjmp(here, 1);
    } redflag_catch (race) {
        return 2;
    }
    return 3;
}

static void *work(void *unused)
{
    (void)unused;
    volatile int caught = 0;
    await(1);
    redflag_try {
        write_deeply(5);
        caught = 100;
    } redflag_catch (race) {
        caught++;
        MUST(race->address == &plain && race->size == sizeof plain);
        MUST(race->now.thread == 1 && race->before.thread == 0 && race->before.tid != race->now.tid);
        MUST(race->now.kind == REDFLAG_WRITE && race->before.kind == REDFLAG_WRITE);
        MUST(race->now.depth >= 1 && race->before.depth >= 1 && race->now.pcs[0] && race->before.pcs[0]);
    }
    MUST(caught == 1);

    /* A race in a catch block, and one that is handed on, belong to the block outside. */
    redflag_try {
        redflag_try {
            plain++;
        } redflag_catch (race) {
            caught++;
            plain = 9;
            caught = 100;
        }
        caught = 100;
    } redflag_catch (race) {
        caught++;
    }
    redflag_try {
        redflag_try {
            plain = 8;
        } redflag_catch (race) {
            redflag_rethrow(race);
            caught = 100;
        }
    } redflag_catch (race) {
        caught++;
        MUST(race->address == &plain);
    }
    MUST(caught == 4);

    /* Blocks that were left are not there any more. */
    for (int i = 0; i < 3; i++)
        redflag_try {
            break;
        } redflag_catch (race) {
            caught = 100;
        }
    redflag_try {
        MUST(left_by_return() == 1);
        MUST(left_by_jump() == 1);
        plain = 6;
    } redflag_catch (race) {
        caught++;
    }
    MUST(caught == 5);

    /* By functions of libc, in the middle of what they are about to touch. */
    size_t size = 64;
    __asm__("" : "+r"(size));
    redflag_try {
        memset(block, 1, size);
    } redflag_catch (race) {
        caught++;
        MUST((char *)race->address >= block && (char *)race->address < block + 64);
    }
    redflag_try {
        memcpy(copy, block, size);
    } redflag_catch (race) {
        caught++;
        MUST(race->now.kind == 0);
    }
    redflag_try {
        free(block);
    } redflag_catch (race) {
        caught++;
        MUST(race->now.kind == (REDFLAG_WRITE | REDFLAG_FREE));
    }
    MUST(caught == 8);

    /* What was refused has left no history: the other thread may do it. */
    redflag_try {
        other = 1;
    } redflag_catch (race) {
        caught = 100;
    }
    MUST(caught == 8);
    printf("%p", (void *)copy); /* the stack of frames is whole */
    reach(2);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    block = calloc(64, 1);
    copy = calloc(64, 1);
    pthread_create(&thread, NULL, work, NULL);
    plain = 1;
    block[40] = 3;
    reach(1);
    await(2);
    plain = 2; /* the refused writes of the other did not happen */
    block[41] = block[8] = 4;
    memset(copy, 0, 64);
    pthread_join(thread, NULL);
    MUST(plain == 2 && block[40] == 3 && block[39] == 0 && other == 1);
    free(block);
    free(copy);
    puts("all is well");
    return 0;
}
