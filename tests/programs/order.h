/* Order that the detector does not see: a counter that only assembler touches, which no compiler instruments.
 *
 *   thread a: write(x); reach(1);            thread b: await(1); write(x);      always a first, and still a race
 *
 * `stage` only grows; reach(n) may be called once for each n. */
#ifndef RF_TESTS_PROGRAMS_ORDER_H
#define RF_TESTS_PROGRAMS_ORDER_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

static int stage __attribute__((used));

static inline int present_stage(void)
{
    int value;
    __asm__ volatile("movl %1, %0" : "=r"(value) : "m"(stage) : "memory");
    return value;
}

static inline void reach(int n)
{
    __asm__ volatile("movl %1, %0" : "=m"(stage) : "r"(n) : "memory");
}

/* One more has come; returns without waiting. */
static inline void arrive(void)
{
    __asm__ volatile("lock; incl %0" : "+m"(stage) : : "memory");
}

static inline void hidden_yield(void)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(24L) : "rcx", "r11", "memory");
}

static inline void await(int n)
{
    while (present_stage() < n)
        hidden_yield();
}

/* About so many milliseconds, by a raw nanosleep. */
static inline void hidden_sleep(long milliseconds)
{
    long wanted[2] = { milliseconds / 1000, milliseconds % 1000 * 1000000 }, result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(35L), "D"(wanted), "S"(0L) : "rcx", "r11", "memory");
}

static inline int hidden_tid(void)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(186L) : "rcx", "r11", "memory");
    return (int)result;
}

/* Until the thread with this number has ended, whether or not anybody joins it: then a signal does not find it any more. */
static inline void await_end(int tid)
{
    long process, result;
    __asm__ volatile("syscall" : "=a"(process) : "0"(39L) : "rcx", "r11", "memory");
    do {
        hidden_yield();
        __asm__ volatile("syscall" : "=a"(result) : "0"(234L), "D"(process), "S"((long)tid), "d"(0L) : "rcx", "r11", "memory");
    } while (result == 0);
}

/* What the program itself expects: a broken runtime must not pass for a quiet one. */
#define MUST(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            exit(99); \
        } \
    } while (0)

static inline void run_both(void *(*a)(void *), void *(*b)(void *))
{
    pthread_t first, second;
    MUST(pthread_create(&first, NULL, a, NULL) == 0);
    MUST(pthread_create(&second, NULL, b, NULL) == 0);
    MUST(pthread_join(first, NULL) == 0);
    MUST(pthread_join(second, NULL) == 0);
}

#endif
