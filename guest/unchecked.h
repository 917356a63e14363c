/* The static pre-filter: calls of hooks that somebody has shown to be free of races. guest/near.c takes them out of the code.
 *
 * 1. The list is read once, at the start, by the one thread that there is. It has the form of guest/pair.h, 1, with a blank or the end of a
 *    line between modules; `redflag run --unchecked` makes it of names (cli/unchecked.c).
 * 2. What is taken out costs nothing. Entries and exits of functions stay: stacks are whole.
 */
#ifndef RF_GUEST_UNCHECKED_H
#define RF_GUEST_UNCHECKED_H

const char *rf_unchecked(void); /* "": none */
void rf_unchecked_count(unsigned removed, unsigned all);
void rf_unchecked_statistics(void); /* for --stats */

#endif
