/* Teams and tasks of OpenMP, and what orders them, for whatever runtime runs them: guest/gomp.c and guest/ompt.c tell it what happens.
 *
 * 1. Every edge goes through an object of the guest's: the address of a byte in one of these records (guest/objects.h). Their values
 *    mean nothing.
 * 2. A team's implicit tasks meet at barriers. A barrier is one of two bytes in turn: who arrives at the next but one has seen
 *    everybody leave this one, so no clock of a later round is received too early.
 * 3. An explicit task that was created in a round is over when that round's barrier is.
 * 4. A record lives as long as somebody may name it: a task as long as it or a child of it is not over, a team as long as its region.
 */
#ifndef RF_GUEST_OPENMP_H
#define RF_GUEST_OPENMP_H

#include "guest/self.h"

struct rf_omp_team {
    char fork, join, ordered, barrier[2];
    char across[64]; /* iterations of doacross loops, by the outermost counter */
};

struct rf_omp_group {
    char done;
    struct rf_omp_group *outer;
};

enum rf_omp_depend { RF_OMP_IN = 1, RF_OMP_OUT, RF_OMP_INOUT, RF_OMP_MUTEX };

/* An address in depend clauses of the children of one task. */
struct rf_omp_place {
    uintptr_t addr;
    char written, read;
    struct rf_omp_place *next;
};

struct rf_omp_use {
    struct rf_omp_place *place;
    enum rf_omp_depend kind;
};

#define RF_OMP_PLACES 64u

struct rf_omp_task {
    uint32_t references; /* atomic: itself, and its children */
    uint32_t round;      /* how many barriers were passed; of an explicit task: when it was created. Its thread's */
    struct rf_omp_team *team;
    struct rf_omp_task *parent; /* NULL: an implicit task */
    struct rf_omp_group *group; /* the innermost one; the task's own thread changes it */
    char start, children;
    struct rf_omp_place **places; /* RF_OMP_PLACES chains, for its children; only its own thread looks for one */
    struct rf_omp_use *uses;      /* its own */
    uint32_t use_count, use_cap;
    size_t args_size; /* what lies behind the record */
};

struct rf_omp_team *rf_omp_team_new(struct rf_self *self);
void rf_omp_team_end(struct rf_self *self, struct rf_omp_team *team);

/* `args` bytes of new memory, aligned as asked, lie behind the record: rf_omp_args(). */
struct rf_omp_task *rf_omp_task_new(struct rf_self *self, struct rf_omp_team *team, struct rf_omp_task *parent, size_t args,
                                    size_t align);
void *rf_omp_args(struct rf_omp_task *task, size_t align);
void rf_omp_task_drop(struct rf_self *self, struct rf_omp_task *task);
void rf_omp_depends(struct rf_self *self, struct rf_omp_task *task, uintptr_t addr, enum rf_omp_depend kind);

/* What happens. */
void rf_omp_fork(struct rf_omp_team *team);   /* by who begins the region */
void rf_omp_member(struct rf_omp_team *team); /* by each thread of it */
void rf_omp_member_end(struct rf_omp_team *team);
void rf_omp_join(struct rf_omp_team *team);         /* by who goes on after it */
void rf_omp_arrive(const struct rf_omp_task *task); /* a barrier */
void rf_omp_leave(struct rf_omp_task *task);
void rf_omp_task_created(struct rf_omp_task *task);
void rf_omp_task_begin(struct rf_omp_task *task);
void rf_omp_task_end(struct rf_omp_task *task);
void rf_omp_taskwait(struct rf_omp_task *task);
void rf_omp_taskwait_depend(struct rf_self *self, struct rf_omp_task *task, uintptr_t addr, enum rf_omp_depend kind);
void rf_omp_group_begin(struct rf_self *self, struct rf_omp_task *task);
void rf_omp_group_end(struct rf_self *self, struct rf_omp_task *task);
void rf_omp_fulfilled(void); /* an event of a detached task: every later end of waiting comes after it */

#endif
