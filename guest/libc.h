/* The words in which interceptors of libc say what a function reads, writes and orders. guest/libc.def, guest/copies.c,
 * guest/formats.c.
 *
 * 1. They are used between RF_ENTER and rf_leave, where `scope` is known, and only if scope.self is.
 * 2. What is read is said before the call, what is written after it: only then is it known how much it was. An acquire comes before
 *    the accesses that it orders, a release after them and before the call.
 */
#ifndef RF_GUEST_LIBC_H
#define RF_GUEST_LIBC_H

#include <stdio.h>

#include "guest/access.h"
#include "guest/escape.h"
#include "guest/intercept.h"
#include "guest/objects.h"
#include "guest/options.h"

/* Around a function of libc whose own use of memory through other interceptors is not looked at: libc has locks that the guest does
 * not see. Not `inside`: what it allocates for the program must be known, and a signal handler is the program's. */
static inline void rf_quiet_begin(struct rf_self *self)
{
    self->ignore_reads++;
    self->ignore_writes++;
}

/* A handler that left the function by longjmp has left these at 0 (guest/signals.c). */
static inline void rf_quiet_end(struct rf_self *self)
{
    self->ignore_reads -= self->ignore_reads != 0;
    self->ignore_writes -= self->ignore_writes != 0;
}

static inline void rf_libc_access(const struct rf_scope *scope, const void *addr, size_t size, unsigned flags)
{
    if (size && addr && !rf_options.ignore_interceptors_accesses)
        rf_access((uintptr_t)addr, size, flags, scope->pc);
    rf_escape_stores((uintptr_t)addr, addr ? size : 0, flags);
}

static inline size_t rf_length(const char *text)
{
    const char *end = text;
    while (*end)
        end++;
    return (size_t)(end - text);
}

static inline size_t rf_length_up_to(const char *text, size_t most)
{
    size_t n = 0;
    while (n < most && text[n])
        n++;
    return n;
}

/* The descriptor of a stream, or -1: one in memory has none. glibc's fileno() asks the same flag, but sets errno. */
static inline int rf_stream_fd(const FILE *f)
{
    return f->_flags & 0x2000 ? f->_fileno : -1;
}

#define R(addr, size) rf_libc_access(&scope, addr, size, 0)
#define W(addr, size) rf_libc_access(&scope, addr, size, RF_A_WRITE)
/* A string with its end; NULL is none. */
#define RS(text) ((text) ? R(text, rf_length(text) + 1) : (void)0)
#define WS(text) ((text) ? W(text, rf_length(text) + 1) : (void)0)
/* An object. */
#define RO(pointer) R(pointer, sizeof *(pointer))
#define WO(pointer) W(pointer, sizeof *(pointer))

#endif
