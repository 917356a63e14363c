// expect: none
// library: mapping-module-library.c
// libs: -ldl
// stock: keeps the history of what was unloaded
// A library that is loaded, used, unloaded and loaded again, each time by another thread.
#include "tests/programs/order.h"

#include <dlfcn.h>

static const char *path;

static NOINLINE void use(void)
{
    void *library = dlopen(path, RTLD_NOW);
    MUST(library);
    int (*next)(void) = (int (*)(void))dlsym(library, "next");
    MUST(next && next() == 1 && next() == 2);
    MUST(dlclose(library) == 0);
}

static NOINLINE void *first(void *unused)
{
    for (int i = 0; i < 20; i++) {
        await(2 * i);
        use();
        reach(2 * i + 1);
    }
    return unused;
}

static NOINLINE void *second(void *unused)
{
    for (int i = 0; i < 20; i++) {
        await(2 * i + 1);
        use();
        reach(2 * i + 2);
    }
    return unused;
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    path = argv[1];
    run_both(first, second);
    return 0;
}
