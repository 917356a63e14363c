/* Which place in the program a byte was accessed from, when its granule's word has one moment for several places.
 *
 * 1. A thread keeps the last few hundred such accesses, in sets of four found by the granule, each for its two bytes. It alone writes them. Many threads have but
 *    a few: a table begins small, and a larger one takes its place. The small one stays with it, since others may be reading there.
 * 2. So do the last RF_NEARBY_ENDED threads that have ended.
 * 3. Another thread reads them when it reports a race: it believes an entry whose granule and moment are the race's before and after
 *    it has read the note. If none is left, the moment's own note is shown: an access of the same thread, to the same eight bytes,
 *    between the same two synchronisations.
 */
#ifndef RF_GUEST_NEARBY_H
#define RF_GUEST_NEARBY_H

#include "guest/self.h"

#define RF_NEARBY_SETS 128u /* at most */
#define RF_NEARBY_WAYS 4u
#define RF_NEARBY_ENDED 64u

struct rf_nearby {
    uint32_t sets; /* a power of two */
    uint32_t puts; /* accesses that were kept here. Of the thread alone */
    struct rf_nearby *smaller;
    struct rf_nearby_access {
        uint64_t place_and_mask; /* the word's address, and the bytes above bit 56 */
        uint32_t moment, note;
    } accesses[];
};

void rf_nearby_put(struct rf_self *self, const uint64_t *place, unsigned mask, uint32_t moment, uint32_t note);
void rf_nearby_clear(struct rf_self *self); /* before moments are used again */
void rf_nearby_end(struct rf_self *self);   /* the thread has ended: its accesses are kept, if it was one of the last that did */
void rf_nearby_clear_ended(void);           /* and forgotten; the world is stopped */
/* The note of the thread's access to some byte of the mask, of the kind that is asked for; 0: not kept. */
uint32_t rf_nearby_note(uint32_t thread, const uint64_t *place, unsigned mask, uint32_t moment, bool writes);

#endif
