/* Recording: guest/record.c. */
#ifndef RF_GUEST_RECORD_H
#define RF_GUEST_RECORD_H

/* At the start, with the environment: if a recorder waits, it is told of everything from now on. */
void rf_record_begin(char **environment);

#endif
