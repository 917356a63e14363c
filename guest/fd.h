/* File descriptors: what they order, and races on their numbers. Used between RF_ENTER and rf_leave, if scope.self is known. */
#ifndef RF_GUEST_FD_H
#define RF_GUEST_FD_H

#include "guest/intercept.h"

enum rf_fd_kind {
    RF_FD_FILE,   /* opened by name: what it is, the kernel says */
    RF_FD_SOCKET, /* sockets of one process may be connected to each other, nobody knows which: they are one object */
    RF_FD_OWN     /* eventfd, timerfd, epoll, ...: an object of its own */
};

void rf_fd_opened(const struct rf_scope *scope, int fd, enum rf_fd_kind kind);
void rf_fd_opened_pair(const struct rf_scope *scope, const int fds[2]); /* pipe, socketpair: one object with two ends */
void rf_fd_copied(const struct rf_scope *scope, int from, int to);      /* dup: one object, another number */
void rf_fd_replaced(const struct rf_scope *scope, int fd);              /* dup2: what `fd` was is no more */
bool rf_fd_closing(const struct rf_scope *scope, int fd);               /* before it is closed; true: */
void rf_fd_closed(int fd);                                              /* to be called after it */
void rf_fd_closing_range(const struct rf_scope *scope, unsigned first, unsigned last);

void rf_fd_used(const struct rf_scope *scope, int fd);     /* it is open, says the program */
void rf_fd_acquires(int fd); /* something came out of it: after the call */
void rf_fd_releases(int fd); /* something goes into it: before the call */

/* For reports: the descriptor that this address stands for, and the note of where it was opened (0: not seen). */
bool rf_fd_location(uintptr_t addr, int *fd, uint32_t *note);

#endif
