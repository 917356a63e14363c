/* The part of <sanitizer/common_interface_defs.h> and <sanitizer/linux_syscall_hooks.h> that a program may call by hand: loads and stores
 * of words that need no alignment, and raw system calls that libc, and so the guest, does not see.
 *
 * 1. A system call is told as its function in libc is (guest/libc.def): what it reads before it, what it wrote after it, and what the
 *    descriptor orders.
 * 2. The frame on top of a report is the caller's: the address these are given is their return address.
 */
#include <string.h>
#include <sys/uio.h>

#include "guest/access.h"
#include "guest/fd.h"
#include "guest/fork.h"
#include "guest/intercept.h"

#define PC ((uintptr_t)__builtin_return_address(0))

#define UNALIGNED(bits)                                                                                 \
    RF_EXPORT uint##bits##_t __sanitizer_unaligned_load##bits(const void *from);                        \
    uint##bits##_t __sanitizer_unaligned_load##bits(const void *from)                                   \
    {                                                                                                   \
        uint##bits##_t value;                                                                           \
        rf_range_read(from, sizeof value, PC);                                                          \
        __builtin_memcpy(&value, from, sizeof value);                                                   \
        return value;                                                                                   \
    }                                                                                                   \
    RF_EXPORT void __sanitizer_unaligned_store##bits(void *to, uint##bits##_t value);                   \
    void __sanitizer_unaligned_store##bits(void *to, uint##bits##_t value)                              \
    {                                                                                                   \
        rf_range_write(to, sizeof value, PC);                                                           \
        __builtin_memcpy(to, &value, sizeof value);                                                     \
    }
UNALIGNED(16)
UNALIGNED(32)
UNALIGNED(64)

/* The caller's frame is on the stack already, its call of us is the place. */
static struct rf_scope scope_at(uintptr_t pc)
{
    struct rf_self *self = rf_started ? rf_self() : NULL;
    return (struct rf_scope){ self && !self->inside ? self : NULL, pc };
}

#define HOOK(name, parameters)                                  \
    RF_EXPORT void __sanitizer_syscall_##name parameters;       \
    void __sanitizer_syscall_##name parameters

#define READS(name, ...)                                                            \
    HOOK(pre_impl_##name, (long fd, long to, long size, ##__VA_ARGS__))             \
    {                                                                               \
        struct rf_scope scope = scope_at(PC);                                       \
        (void)to;                                                                   \
        (void)size;                                                                 \
        if (scope.self)                                                             \
            rf_fd_used(&scope, (int)fd);                                            \
    }                                                                               \
    HOOK(post_impl_##name, (long result, long fd, long to, long size, ##__VA_ARGS__)) \
    {                                                                               \
        struct rf_scope scope = scope_at(PC);                                       \
        (void)size;                                                                 \
        if (!scope.self || result < 0)                                              \
            return;                                                                 \
        rf_fd_acquires((int)fd);                                                    \
        if (result)                                                                 \
            rf_range_write((void *)to, (size_t)result, scope.pc);                   \
    }
READS(read)
#define OFFSET long offset __attribute__((unused))
READS(pread64, OFFSET)

#define WRITES(name, ...)                                                             \
    HOOK(pre_impl_##name, (long fd, long from, long size, ##__VA_ARGS__))             \
    {                                                                                 \
        struct rf_scope scope = scope_at(PC);                                         \
        if (!scope.self)                                                              \
            return;                                                                   \
        if (size > 0)                                                                 \
            rf_range_read((const void *)from, (size_t)size, scope.pc);                \
        rf_fd_used(&scope, (int)fd);                                                  \
        rf_fd_releases((int)fd);                                                      \
    }                                                                                 \
    HOOK(post_impl_##name, (long result, long fd, long from, long size, ##__VA_ARGS__)) \
    {                                                                                 \
        (void)result;                                                                 \
        (void)fd;                                                                     \
        (void)from;                                                                   \
        (void)size;                                                                   \
    }
WRITES(write)
WRITES(pwrite64, OFFSET)

HOOK(pre_impl_close, (long fd))
{
    struct rf_scope scope = scope_at(PC);
    if (scope.self)
        rf_fd_closing(&scope, (int)fd);
}

HOOK(post_impl_close, (long result, long fd))
{
    if (rf_started && result >= 0)
        rf_fd_closed((int)fd);
}

static void pipe_made(struct rf_scope scope, long result, const int *fds)
{
    if (!scope.self || result < 0)
        return;
    rf_range_write(fds, 2 * sizeof *fds, scope.pc);
    rf_fd_opened_pair(&scope, fds);
}

HOOK(pre_impl_pipe, (long fds))
{
    (void)fds;
}

HOOK(post_impl_pipe, (long result, long fds))
{
    pipe_made(scope_at(PC), result, (const int *)fds);
}

HOOK(pre_impl_pipe2, (long fds, long flags))
{
    (void)fds;
    (void)flags;
}

HOOK(post_impl_pipe2, (long result, long fds, long flags))
{
    (void)flags;
    pipe_made(scope_at(PC), result, (const int *)fds);
}

HOOK(pre_impl_fork, (void))
{
    rf_fork_before();
}

HOOK(post_impl_fork, (long result))
{
    rf_fork_after(result == 0);
}

/* The child shares the memory until its exec: for the guest it is the calling thread. */
HOOK(pre_impl_vfork, (void))
{
}

HOOK(post_impl_vfork, (long result))
{
    (void)result;
}
