#!/bin/sh
# A program that was not built with the runtime loads a library that was, while its threads run. They become known in the midst of
# functions, and leave more of them than they were seen to enter.
set -eu
redflag=${REDFLAG:?}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >part.c <<'EOF'
static __thread int mine[1024];

__attribute__((noinline)) static int down(int depth)
{
    int below = depth ? down(depth - 1) : 0;
    mine[depth]++;
    return below + 1;
}

int work(int depth)
{
    return down(depth) + down(depth);
}
EOF
cat >program.c <<'EOF'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int (*volatile work)(int);

static void *run(void *argument)
{
    int depth = *(int *)argument, sum = 0;
    while (!work)
        usleep(1000);
    for (int i = 0; i < 100; i++)
        sum += work(depth);
    printf("%d\n", sum);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    int depths[2] = { 3, 1000 };
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run, &depths[i]);
    void *library = dlopen("./part.so", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    work = (int (*)(int))dlsym(library, "work");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
EOF
"$redflag" cc -g -O0 -shared -fPIC -o part.so part.c
cc -g -o program program.c -pthread -ldl
if ! ./program >out 2>err; then
    echo "late.sh: the program failed:" >&2
    cat out err >&2
    exit 1
fi
printf '200200\n800\n' >wanted
sort out | cmp - wanted
