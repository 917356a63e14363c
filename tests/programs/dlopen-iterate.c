// expect: none
// libs: -ldl
// While a thread is told of all modules, by a callback that is the first to call some function of libc, another one loads a module: it waits for
// the end of the telling with a lock that whoever looks for a function needs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "tests/programs/order.h"

static size_t digits;

static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    reach(1);
    hidden_sleep(300); /* the other one has come to wait by now, or the program tests nothing: it cannot fail by that */
    digits += strspn(info->dlpi_name, "0123456789");
    return 1;
}

static void *load(void *unused)
{
    (void)unused;
    await(1);
    void *library = dlopen("libresolv.so.2", RTLD_NOW);
    if (library)
        dlclose(library);
    return library;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, load, NULL);
    dl_iterate_phdr(look, NULL);
    pthread_join(thread, NULL);
    return digits > 100;
}
