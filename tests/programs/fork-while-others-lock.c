// expect: none
// runs: 3
// Forks while other threads allocate, lock and access memory: neither side may hang.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/order.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int counter, stop;

static void *work(void *unused)
{
    for (int on = 1; on;) {
        char *memory = malloc(100);
        memory[3] = 1;
        pthread_mutex_lock(&mutex);
        counter += memory[3];
        on = !stop;
        pthread_mutex_unlock(&mutex);
        free(memory);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            char *memory = malloc(1 << 20);
            memory[77] = 1;
            free(memory);
            _exit(memory != NULL ? 5 : 6);
        }
        int status;
        MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
    }
    pthread_mutex_lock(&mutex);
    stop = 1;
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
