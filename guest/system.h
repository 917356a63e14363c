/* The one door to the kernel: raw system calls, which leave errno and cancellation alone, and lines of text for people. */
#ifndef RF_GUEST_SYSTEM_H
#define RF_GUEST_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

/* Returns the result, or -errno. */
long rf_syscall(long number, long a, long b, long c, long d, long e, long f);
#define RF_SYSCALL(n, ...) RF_SYSCALL_(n, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define RF_SYSCALL_(n, a, b, c, d, e, f, ...) \
    rf_syscall((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* A line for the user: "redflag: " and printf's %s %d %u %x %zu %llu %c %p, at once and whole. Inside handlers and before start too. */
void rf_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
size_t rf_format(char *buffer, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Says it and ends the process at once with the guest's own failure status (RF_FAILURE, not the exit code of races). */
#define RF_FAILURE 67
_Noreturn void rf_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

void rf_yield(void);
/* Waits while *word == value / wakes all who wait. */
void rf_futex_wait(uint32_t *word, uint32_t value);
void rf_futex_wake(uint32_t *word);

#endif
