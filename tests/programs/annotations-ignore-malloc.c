// expect: none
// runs: 10
// A block that was allocated while writes are ignored was not written.
#include "tests/programs/order.h"

void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

static int *block;

static void *second(void *unused)
{
    await(1);
    *__atomic_load_n(&block, __ATOMIC_RELAXED) = 42;
    return unused;
}

int main(void)
{
    pthread_t other;
    pthread_create(&other, NULL, second, NULL);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    int *made = malloc(sizeof *made);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    __atomic_store_n(&block, made, __ATOMIC_RELAXED);
    reach(1);
    pthread_join(other, NULL);
    free(block);
    return 0;
}
