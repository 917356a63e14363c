// expect: race
// runs: 10
// race-at: first second
// What comes after the end of ignoring counts, also if it repeats what was ignored.
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
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    a = 1;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    a = 2;
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    a = 3;
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
