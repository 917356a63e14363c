// expect: none
// runs: 10
// libs: -ldl
// library: near-library.c
// stock: it leaves the program's code as it is
// The calls of a library are changed when it is loaded, whether there are other threads or not, and again if it comes back.
#include "tests/programs/near-code.h"

#include <dlfcn.h>
#include <pthread.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_at_gate(void *argument)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return argument;
}

static int load_and_check(const char *path, int list)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*work)(void);
    *(void **)&work = dlsym(library, "near_library_work");
    if (!work || !work())
        return 2;
    if (!near_changed(*(void **)&work, list))
        return 3;
    return dlclose(library) ? 4 : 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 9;
    int status = load_and_check(argv[1], argc > 2);
    pthread_t other;
    pthread_mutex_lock(&gate);
    pthread_create(&other, NULL, wait_at_gate, NULL);
    for (int i = 0; i < 3 && !status; i++)
        status = load_and_check(argv[1], 0);
    pthread_mutex_unlock(&gate);
    pthread_join(other, NULL);
    return status;
}
