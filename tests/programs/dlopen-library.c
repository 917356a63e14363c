// expect: none
// runs: 10
// library: dlopen-part.c
// An instrumented library is loaded, used by several threads, and unloaded, again and again.
#include <dlfcn.h>

#include "tests/programs/order.h"

static void *library;
static int (*add)(int);
static void (*set)(int);

static void load(const char *path)
{
    library = dlopen(path, RTLD_NOW);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    MUST(library);
    add = (int (*)(int))dlsym(library, "add");
    set = (void (*)(int))dlsym(library, "set");
    MUST(add && set);
}

static void *work(void *unused)
{
    MUST(add(1) == 12);
    return unused;
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    for (int i = 0; i < 20; i++) {
        load(argv[1]);
        set(i);
        run_both(work, work);
        MUST(dlclose(library) == 0);
    }
    return 0;
}
