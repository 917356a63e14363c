/* RaceChaser (Biswas et al., CC 2017, section 4): one ordered pair of sites per run, by collision.
 *
 * A thread that comes to s1 waits there, sometimes, for a little while (guest/chase/budget.h). If another comes to s2 meanwhile and is
 * about to access the same bytes, and one of the two writes, both stand before their accesses at once: a race, certainly. Nothing
 * else is looked at: no synchronisation, no other access, no allocation. Calls of hooks at all other sites are taken out of the code.
 *
 * This is a library of its own, libredflag-chase.so.0, which takes the place of the runtime. It intercepts nothing.
 *
 * 1. What is shared (who waits, the accounting) is changed under one lock, with all signals of the thread blocked, and only by a thread
 *    that begins or ends a wait, or that comes to s2 while somebody waits.
 * 2. s2 costs one load while nobody waits: of rf_chase_waiting, which is written under the lock. A thread that reads an old value
 *    passes by: a race may be missed, none is made up.
 * 3. A thread that waits has its signals blocked, so that nothing takes it away from its access. It leaves under the lock. So who
 *    holds the lock and sees it waiting knows that it stands there.
 * 4. Space is constant: RF_CHASE_WAITERS threads wait at once at most, others pass by and are counted.
 * 5. A child of vfork() or of clone() that shares or copied our memory is not the process that `process` names, and passes by.
 *    After fork() the child is a process like any other in which nobody waits.
 */
#ifndef RF_GUEST_CHASE_CHASE_H
#define RF_GUEST_CHASE_CHASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/hot.h"
#include "guest/pair.h"
#include "sites/hook.h"

#define RF_CHASE_SITES 1024u
#define RF_CHASE_WAITERS 64u
#define RF_CHASE_DEPTH 128u

/* A call of a hook at one of the two sites. Written while the module is changed, before it runs. */
struct rf_chase_site {
    uintptr_t pc;  /* behind the call, or the jump */
    uint8_t roles; /* s1, s2 or both: guest/pair.h */
    bool jump;     /* the return address is that of the caller's caller */
    struct rf_hook hook;
};

/* A thread's own. */
struct rf_chase_self {
    uint32_t skip;     /* instances of s1 to be passed over; 0: look at the next */
    uint32_t number;   /* of the thread, plus 1; 0: not asked yet */
    uint64_t samples;  /* how often it has waited */
    uint64_t random;   /* state; 0: not begun */
    uint64_t last_look; /* at the clock */
    uint32_t hot;       /* how many instances share one look, less 1 */
};
extern RF_TLS struct rf_chase_self rf_chase_self;

extern uint32_t rf_chase_waiting RF_OURS; /* how many wait */

/* What `redflag chase` asked for, from the environment. */
struct rf_chase_wish {
    const char *first, *second; /* guest/pair.h */
    double rate;
    uint64_t delay_ns, least_ns, seed;
    bool keep_going; /* after the first race: other stacks may lead to the sites */
    const char *account; /* core/account.h; NULL: nobody asks */
};

void rf_chase_begin(const struct rf_chase_wish *wish);
void rf_chase_end(void); /* says what was done, if asked for */

/* A thread is at the site. `second` is the hook's second argument. */
void rf_chase_at(uintptr_t addr, uintptr_t second, uint32_t site) RF_OURS;
void rf_chase_atomic(void) RF_OURS; /* the same for atomic hooks: guest/chase/atomic.S */

/* -- guest/chase/sites.c -- */
extern struct rf_chase_site rf_chase_sites[RF_CHASE_SITES] RF_OURS;
extern uint32_t rf_chase_unpatched RF_OURS; /* > 0: some calls of our sites come through the PLT */
void rf_chase_wanted(const char *first, const char *second);
void rf_chase_modules(void); /* some may be new */
void rf_chase_plt(uintptr_t addr, uintptr_t second, uintptr_t pc) RF_OURS; /* one that came that way, perhaps of our sites */
/* How many calls of hooks were found at the sites, and taken out. */
struct rf_chase_found {
    uint32_t first, second, removed;
};
struct rf_chase_found rf_chase_found(void);

/* -- guest/chase/report.c -- */
struct rf_chase_side {
    const struct rf_chase_site *site;
    uintptr_t addr;
    size_t size;
    uint32_t flags; /* guest/access.h */
    uint32_t thread;
    int32_t tid;
    unsigned depth;
    uintptr_t pcs[RF_CHASE_DEPTH];
};
void rf_chase_report(struct rf_chase_side *waits, struct rf_chase_side *comes);
int rf_chase_finish(int status);
void rf_chase_report_fork_child(void);
/* The calling thread's stack, beginning at the site. */
unsigned rf_chase_stack(const struct rf_chase_site *site, uintptr_t *pcs);
void rf_chase_stack_begin(void);

#endif
