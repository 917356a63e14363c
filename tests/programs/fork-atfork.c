// expect: none
// runs: 10
// Handlers of pthread_atfork hold the program's own locks over a fork.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter, stop;

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

static void *work(void *unused)
{
    for (int on = 1; on;) {
        lock();
        counter++;
        on = !stop;
        unlock();
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_atfork(lock, unlock, unlock);
    pthread_create(&thread, NULL, work, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            lock();
            counter++;
            unlock();
            _exit(0);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0);
    }
    lock();
    stop = 1;
    unlock();
    pthread_join(thread, NULL);
    return 0;
}
