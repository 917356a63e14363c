// expect: race
// runs: 10
// library: dlopen-part.c
// race-at: set
// A race inside a library that was loaded late.
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

static void *one(void *unused)
{
    set(1);
    reach(1);
    return unused;
}

static void *two(void *unused)
{
    await(1);
    set(2);
    return unused;
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    load(argv[1]);
    run_both(one, two);
    return 0;
}
