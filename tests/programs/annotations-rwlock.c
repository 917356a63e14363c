// expect: none
// runs: 10
// A writer and then a reader of an annotated lock.
#include "tests/programs/order.h"

void AnnotateRWLockCreate(const char *file, int line, const volatile void *lock);
void AnnotateRWLockDestroy(const char *file, int line, const volatile void *lock);
void AnnotateRWLockAcquired(const char *file, int line, const volatile void *lock, long is_write);
void AnnotateRWLockReleased(const char *file, int line, const volatile void *lock, long is_write);

static int data;
static char lock;

static NOINLINE void *first(void *unused)
{
    AnnotateRWLockAcquired(__FILE__, __LINE__, &lock, 1);
    data = 1;
    AnnotateRWLockReleased(__FILE__, __LINE__, &lock, 1);
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    AnnotateRWLockAcquired(__FILE__, __LINE__, &lock, 0);
    MUST(data == 1);
    AnnotateRWLockReleased(__FILE__, __LINE__, &lock, 0);
    return unused;
}

int main(void)
{
    run_both(first, second);
    return 0;
}
