/* fork(): guest/fork.c. */
#ifndef RF_GUEST_FORK_H
#define RF_GUEST_FORK_H

#include <stdbool.h>

bool rf_fork_forbids_threads(void); /* die_after_fork, in the child of a process with several threads */

#endif
