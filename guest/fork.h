/* fork(): guest/fork.c. */
#ifndef RF_GUEST_FORK_H
#define RF_GUEST_FORK_H

#include <stdbool.h>

void rf_fork_before(void);       /* around a fork that libc does not see: */
void rf_fork_after(bool child);
bool rf_fork_forbids_threads(void); /* die_after_fork, in the child of a process with several threads */

#endif
