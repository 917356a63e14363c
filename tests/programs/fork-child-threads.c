// expect: none
// runs: 10
// stock: dies by default when the child of a program with threads starts one
// The child of a program with threads starts threads itself.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *work(void *unused)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *waits(void *unused)
{
    await(1);
    return unused;
}

int main(void)
{
    pthread_t other;
    pthread_create(&other, NULL, waits, NULL);
    counter = 0;
    pid_t child = fork();
    if (child == 0) {
        run_both(work, work);
        exit(counter == 200 ? 7 : 8);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    reach(1);
    pthread_join(other, NULL);
    run_both(work, work);
    MUST(counter == 200);
    return 0;
}
