// expect: none
// runs: 10
// A virtual machine moves an object, and the lock in it moves along; a finalizer comes after all that was done before.
#include "tests/programs/order.h"

typedef unsigned long jptr;
void __tsan_java_init(jptr begin, jptr size);
int __tsan_java_fini(void);
void __tsan_java_alloc(jptr at, jptr size);
void __tsan_java_free(jptr at, jptr size);
jptr __tsan_java_find(jptr *from, jptr to);
void __tsan_java_move(jptr from, jptr to, jptr size);
void __tsan_java_finalize(void);
void __tsan_java_mutex_lock(jptr lock);
void __tsan_java_mutex_unlock(jptr lock);

#define OBJECT 64
#define LOCK 41 /* somewhere in it */
static char heap[1 << 16] __attribute__((aligned(64)));
static int finalized;

static void *second(void *unused)
{
    char *moved = heap + OBJECT / 2;
    await(1);
    __tsan_java_mutex_lock((jptr)moved + LOCK);
    *(int *)moved = 2;
    __tsan_java_mutex_unlock((jptr)moved + LOCK);
    __tsan_java_finalize();
    finalized = 2;
    return unused;
}

int main(void)
{
    pthread_t other;
    jptr begin = (jptr)heap, found = begin;
    __tsan_java_init(begin, sizeof heap);
    __tsan_java_alloc(begin, OBJECT);
    MUST(__tsan_java_find(&found, begin + sizeof heap) == OBJECT && found == begin);
    pthread_create(&other, NULL, second, NULL);
    __tsan_java_mutex_lock(begin + LOCK);
    *(int *)heap = 1;
    __tsan_java_mutex_unlock(begin + LOCK);
    __tsan_java_move(begin, begin + OBJECT / 2, OBJECT);
    MUST(__tsan_java_find(&found, begin + sizeof heap) == OBJECT && found == begin + OBJECT / 2);
    finalized = 1;
    reach(1);
    pthread_join(other, NULL);
    __tsan_java_free(begin + OBJECT / 2, OBJECT);
    return __tsan_java_fini();
}
