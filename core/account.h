/* What threads of a chased program have waited, and its children's: written by the library that chases (guest/chase/chase.c), read by
 * `redflag watch`, also when the program was killed. It is memory of the watch's, which the program finds by the path in an environment
 * variable and maps: nothing is left on a disk, whoever is killed, and no descriptor stays with the program.
 *
 * The variable has the memory's name, RF_ACCOUNT_NAME and a number of the run's own, a space, and the path, /proc/PROCESS/fd/NUMBER. A program
 * may outlive its watch, or begin others where processes have other numbers: then the path leads to something of a stranger's. So it is
 * opened only if it leads to memory of that name.
 */
#ifndef RF_CORE_ACCOUNT_H
#define RF_CORE_ACCOUNT_H

#include <stdint.h>

#define RF_ACCOUNT_VARIABLE "REDFLAG_CHASE_ACCOUNT"
#define RF_ACCOUNT_NAME "redflag-account-"

struct rf_account {
    uint64_t processes; /* that write here. Atomic, as the next */
    uint64_t waited;    /* ns, of stretches in which somebody waits: each is entered with t_delay when it begins, and set right when it ends */
};

#endif
