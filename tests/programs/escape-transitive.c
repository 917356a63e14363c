// expect: race
// runs: 5
// race-at: after second
// options: escape=1:sync=fib
// A list is private; then its head is published by an atomic store, and with it all that hangs on it, also through pointers into the
// middle of blocks and behind their ends.
#include <stdatomic.h>

#include "tests/programs/order.h"

struct node {
    long pad[2];
    struct node *next; /* points to the next one's pad[1] */
    long value;
};

static _Atomic(struct node *) published;

static struct node *of(struct node *pointer)
{
    return (struct node *)((char *)pointer - sizeof(long));
}

NOINLINE void after(struct node *last)
{
    last->value = 1;
}

NOINLINE void second(struct node *last)
{
    last->value = 2;
}

static void *one(void *unused)
{
    struct node *first = calloc(1, sizeof *first), *last = first;
    for (int i = 0; i < 1000; i++) {
        struct node *next = calloc(1, sizeof *next);
        last->next = (struct node *)&next->pad[1];
        last = next;
    }
    atomic_store_explicit(&published, first, memory_order_release);
    after(last);
    reach(1);
    await(2);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    struct node *node = atomic_exchange(&published, NULL);
    while (node->next)
        node = of(node->next);
    second(node);
    reach(2);
    return unused;
}

int main(void)
{
    run_both(one, two);
    return 0;
}
