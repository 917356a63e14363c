// expect: none
// runs: 10
// Accesses that are ignored leave nothing and find nothing.
#include "tests/programs/order.h"

void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);

static int a, b;

static NOINLINE void *first(void *unused)
{
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    a = 1;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    b = 1;
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(a == 1);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    MUST(b == 1);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
