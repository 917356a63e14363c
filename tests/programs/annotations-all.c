// expect: none
// runs: 10
// Every annotation is there, and those that say nothing about order or memory do nothing.
#include "tests/programs/order.h"

#define NAMES(X) \
    X(CondVarSignal) X(CondVarSignalAll) X(CondVarWait) X(EnableRaceDetection) X(FlushState) X(MemoryIsInitialized) \
    X(MutexIsNotPHB) X(MutexIsUsedAsCondVar) X(NoOp) X(PCQCreate) X(PCQDestroy) X(PCQGet) X(PCQPut) X(PublishMemoryRange) \
    X(RWLockCreateStatic) X(TraceMemory) X(UnpublishMemoryRange) X(FlushExpectedRaces)
#define DECLARE(name) void Annotate##name(const char *file, int line, const volatile void *a, long b);
#define CALL(name) Annotate##name(__FILE__, __LINE__, &word, 0);
NAMES(DECLARE)
void AnnotateThreadName(const char *file, int line, const char *name);
int RunningOnValgrind(void);
double ValgrindSlowdown(void);

static long word;

int main(void)
{
    NAMES(CALL)
    AnnotateThreadName(__FILE__, __LINE__, "a name that is longer than it may be");
    MUST(RunningOnValgrind() == 0 && ValgrindSlowdown() >= 1);
    return 0;
}
