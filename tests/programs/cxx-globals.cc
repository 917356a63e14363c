// expect: none
// runs: 10
// text: destroyed
// Constructors and destructors of global objects run instrumented, in the main thread, before and after all others.
#include "tests/programs/order.h"

struct thing {
    int value = 4;
    ~thing()
    {
        MUST(value == 6);
        puts("destroyed");
    }
};

static thing global;

static void *work(void *unused)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    global.value++;
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main()
{
    run_both(work, work);
    return 0;
}
