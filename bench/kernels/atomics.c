/* Counters that all threads add to, and a stack without locks. */
#include <stdatomic.h>

#include "bench/kernels/kernel.h"

enum { OPERATIONS = SCALED(6000000), NODES = 1000 };

struct node {
    struct node *next;
    uint64_t value;
};

static atomic_ullong counter, relaxed;
static _Atomic(struct node *) top;
static struct node nodes[THREADS][NODES];

static void *part(void *argument)
{
    struct node *mine = nodes[(intptr_t)argument];
    for (int i = 0; i < OPERATIONS; i++) {
        atomic_fetch_add(&counter, 1);
        atomic_fetch_add_explicit(&relaxed, 2, memory_order_relaxed);
    }
    for (int i = 0; i < NODES; i++) {
        mine[i].value = (uint64_t)i;
        mine[i].next = atomic_load(&top);
        while (!atomic_compare_exchange_weak(&top, &mine[i].next, &mine[i]))
            ;
    }
    return NULL;
}

int main(void)
{
    run_threads(part);
    uint64_t sum = 0;
    for (struct node *node = top; node; node = node->next)
        sum += node->value;
    printf("%llu %llu %llu\n", counter, relaxed, (unsigned long long)sum);
    return counter != (uint64_t)THREADS * OPERATIONS;
}
