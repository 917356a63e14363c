/* What threads of a chased program have waited, and its children's: written by the library that chases (guest/chase/chase.c), read by
 * `redflag watch`, also when the program was killed. It is memory of the watch's, which the program finds by the path in an environment
 * variable and maps: nothing is left on a disk, whoever is killed, and no descriptor stays with the program.
 */
#ifndef RF_CORE_ACCOUNT_H
#define RF_CORE_ACCOUNT_H

#include <stdint.h>

#define RF_ACCOUNT_VARIABLE "REDFLAG_CHASE_ACCOUNT"

struct rf_account {
    uint64_t processes; /* that write here. Atomic, as the next */
    uint64_t waited;    /* ns, of stretches in which somebody waits: each is entered with t_delay when it begins, and set right when it ends */
};

#endif
