// expect: none
// runs: 10
// An object without derived classes writes the same pointer again when it is destroyed: no race on it, as the compilers tell by their hook.
#include "tests/programs/order.h"

struct thing {
    virtual void call()
    {
    }
    virtual ~thing()
    {
    }
};

static thing *object;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void *calls(void *unused)
{
    object->call();
    pthread_mutex_lock(&mutex);
    done = 1;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *destroys(void *unused)
{
    for (int there = 0; !there;) {
        pthread_mutex_lock(&mutex);
        there = done;
        pthread_mutex_unlock(&mutex);
    }
    delete object;
    return unused;
}

int main()
{
    object = new thing;
    run_both(calls, destroys);
    return 0;
}
