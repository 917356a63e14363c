// expect: none
// options: escape=1:sync=fib:stats=1
// text: not escaped: 
// no-text: not escaped: 0
// Blocks that stay with their thread: passed on the stack, through a private list, freed. The other thread has its own.
#include "tests/programs/order.h"

struct node {
    struct node *next;
    long values[6];
};

static void *run(void *unused)
{
    struct node *list = NULL;
    long sum = 0;
    for (int i = 0; i < 200; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = list;
        for (int j = 0; j < 6; j++)
            node->values[j] = i + j;
        list = node;
    }
    while (list) {
        struct node *next = list->next;
        for (int j = 0; j < 6; j++)
            sum += list->values[j];
        free(list);
        list = next;
    }
    MUST(sum == 6 * 199 * 100 + 15 * 200);
    return unused;
}

int main(void)
{
    run_both(run, run);
    return 0;
}
