// expect: race
// runs: 10
// race-at: first second
// Synchronisation that is ignored orders nothing.
#include "tests/programs/order.h"

void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);

static int data, flag;

static NOINLINE void *first(void *unused)
{
    data = 1;
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(__atomic_load_n(&flag, __ATOMIC_ACQUIRE) == 1);
    MUST(data == 1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
