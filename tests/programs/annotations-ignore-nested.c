// expect: none
// runs: 10
// Ignoring nests.
#include "tests/programs/order.h"

void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);

static int a;

static NOINLINE void *first(void *unused)
{
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    a = 1;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    MUST(a == 1);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
