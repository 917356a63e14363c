// expect: race
// runs: 10
// race-at: first second
// stock: ignores both
// Who ignores reads still writes.
#include "tests/programs/order.h"

void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);

static volatile int a;

static NOINLINE void *first(void *unused)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    a = 1;
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    a = 2;
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
