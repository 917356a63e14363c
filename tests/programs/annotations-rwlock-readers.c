// expect: race
// runs: 10
// race-at: first second
// Two readers of an annotated lock are not ordered.
#include "tests/programs/order.h"

void AnnotateRWLockCreate(const char *file, int line, const volatile void *lock);
void AnnotateRWLockDestroy(const char *file, int line, const volatile void *lock);
void AnnotateRWLockAcquired(const char *file, int line, const volatile void *lock, long is_write);
void AnnotateRWLockReleased(const char *file, int line, const volatile void *lock, long is_write);

static int data;
static char lock;

static NOINLINE void *first(void *unused)
{
    AnnotateRWLockAcquired(__FILE__, __LINE__, &lock, 0);
    data = 1;
    AnnotateRWLockReleased(__FILE__, __LINE__, &lock, 0);
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
