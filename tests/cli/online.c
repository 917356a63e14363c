/* Every hook of an access finds what it races with, whichever way its calls are led (guest/near.c): the hooks that the compiler calls
 * are called by name here, each for a cell of its own. Says which find nothing. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#define FOR_EACH_SIZE(X, name) X(name##1) X(name##2) X(name##4) X(name##8)
#define FOR_EACH_HOOK(X)                                                                                                    \
    FOR_EACH_SIZE(X, __tsan_read)                                                                                           \
    FOR_EACH_SIZE(X, __tsan_write) X(__tsan_read16) X(__tsan_write16) X(__tsan_unaligned_read2) X(__tsan_unaligned_read4)   \
        X(__tsan_unaligned_read8) X(__tsan_unaligned_write2) X(__tsan_unaligned_write4) X(__tsan_unaligned_write8)          \
            FOR_EACH_SIZE(X, __tsan_volatile_read) FOR_EACH_SIZE(X, __tsan_volatile_write)                                  \
                FOR_EACH_SIZE(X, __tsan_read_write) X(__tsan_vptr_read)

#define DECLARE(hook) void hook(void *address);
FOR_EACH_HOOK(DECLARE)
void __tsan_read_range(void *address, size_t size);
void __tsan_write_range(void *address, size_t size);

#define COUNT(hook) +1
enum { HOOKS = FOR_EACH_HOOK(COUNT) + 2 };

static long cells[HOOKS][8] __attribute__((aligned(64)));
static volatile int written, reports; /* no order is to come of these: they are not looked at */

void __tsan_on_report(void *report);
void __tsan_on_report(void *report)
{
    (void)report;
    __asm__ volatile("lock incl %0" : "+m"(reports));
}

static int look(const volatile int *from)
{
    int value;
    __asm__ volatile("movl %1, %0" : "=r"(value) : "m"(*from));
    return value;
}

static void *writer(void *unused)
{
    for (int i = 0; i < HOOKS; i++)
        cells[i][0] = cells[i][1] = 1;
    __asm__ volatile("movl $1, %0" : "=m"(written) : : "memory");
    return unused;
}

static void *caller(void *unused)
{
    int i = 0, before;
    while (!look(&written))
        __asm__ volatile("pause");
#define AFTER(hook)                                                                                                         \
    if (look(&reports) == before)                                                                                           \
        printf("%s finds nothing\n", #hook);
#define CALL(hook)                                                                                                          \
    before = look(&reports);                                                                                                \
    hook(cells[i++]);                                                                                                       \
    AFTER(hook)
    FOR_EACH_HOOK(CALL)
    before = look(&reports);
    __tsan_read_range(cells[i++], 16);
    AFTER(__tsan_read_range)
    before = look(&reports);
    __tsan_write_range(cells[i++], 16);
    AFTER(__tsan_write_range)
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, caller, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
