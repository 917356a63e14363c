/* The interface for runtimes of languages (include/redflag.h, doc/embedding.md): what its files share. */
#ifndef RF_GUEST_EMBED_H
#define RF_GUEST_EMBED_H

#include "guest/self.h"

/* The calling thread, if there is something to do for it. From here to rf_embed_leave() what it does is the program's, whatever section
 * of the runtime system it is in. */
struct rf_embed {
    struct rf_self *self; /* NULL: nothing is to be done */
    uint32_t system;
};

struct rf_embed rf_embed_enter(void);
void rf_embed_leave(const struct rf_embed *embed);

void redflag_rt_system_begin(void); /* include/redflag.h */
void redflag_rt_system_end(void);

/* Any address that the program uses for a place, as an access carries it. */
uintptr_t rf_embed_place(const void *place, uintptr_t pc);
/* The names of such a pc; false: it is none. Any thread, any time. guest/embed_place.c */
bool rf_place_name(uintptr_t pc, const char **function, const char **file, uint32_t *line);

#endif
