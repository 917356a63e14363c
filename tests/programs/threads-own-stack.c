// expect: none
// runs: 10
// stock: its static TLS does not fit on the stack
// A thread on memory that the program gave it, used again and again.
#include "tests/programs/order.h"

#define SIZE (256 << 10)

static void *work(void *place)
{
    char local[1000];
    for (unsigned i = 0; i < sizeof local; i++)
        local[i] = (char)i;
    *(int *)place = local[7];
    return NULL;
}

int main(void)
{
    char *stack = aligned_alloc(4096, SIZE);
    for (int i = 0; i < 20; i++) {
        int result = 0;
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        MUST(pthread_attr_setstack(&attributes, stack, SIZE) == 0);
        MUST(pthread_create(&thread, &attributes, work, &result) == 0);
        pthread_attr_destroy(&attributes);
        pthread_join(thread, NULL);
        MUST(result == 7);
        for (int j = 0; j < SIZE; j += 64)
            stack[j] = 0;
    }
    free(stack);
    return 0;
}
