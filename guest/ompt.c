/* LLVM's libomp tells through OMPT, the tools interface of OpenMP 5 (section 4), what it does. Types are written down as far as they
 * are needed; numbers are the specification's.
 *
 * 1. The runtime keeps a word for us with each region and each task: our record (guest/openmp.h).
 * 2. The threads of a region may leave its last barrier long after its parent has gone on; that event names no region, and then
 *    nothing is done. What they did before it was published when they arrived.
 * 3. "released" is told after the lock was given back, when another thread may have it already. So there is a gate for each lock: who
 *    acquired it waits there until the one before has told. That one is on its way, and needs nothing of us.
 * 4. A task runs under the clock of the thread that runs it, as in guest/gomp.c.
 */
#include "guest/ompt.h"

#include "guest/access.h"
#include "guest/atomics.h"
#include "guest/gomp.h"
#include "guest/locks.h"
#include "guest/memory.h"
#include "guest/objects.h"
#include "guest/spin.h"
#include "guest/uninstrumented.h"

union word { /* ompt_data_t */
    uint64_t value;
    void *ptr;
};

enum callback {
    PARALLEL_BEGIN = 3,
    PARALLEL_END = 4,
    TASK_CREATE = 5,
    TASK_SCHEDULE = 6,
    IMPLICIT_TASK = 7,
    SYNC_REGION_WAIT = 16,
    MUTEX_RELEASED = 17,
    DEPENDENCES = 18,
    SYNC_REGION = 23,
    LOCK_DESTROY = 25,
    MUTEX_ACQUIRE = 26,
    MUTEX_ACQUIRED = 27,
    REDUCTION = 31
};

enum { BEGIN = 1, END = 2 };
enum { TASKWAIT = 5, TASKGROUP = 6, REDUCING = 7 }; /* kinds of synchronisation; all others are barriers */
enum { COMPLETE = 1, CANCELLED = 3, DETACHED = 4, EARLY_FULFILLED = 5, LATE_FULFILLED = 6 };
enum { INITIAL_TASK = 1 };
enum { LOCK_NEST = 3, LOCK_TEST_NEST = 4 };

struct dependence {
    union word variable;
    int kind; /* enum rf_omp_depend; SOURCE and SINK: of a doacross loop, one entry for each counter */
};

enum { SOURCE = 5, SINK = 6 };

typedef void any_function(void);
typedef any_function *lookup_function(const char *name);
typedef int set_callback(int which, any_function *function);
typedef int get_task_memory(void **addr, size_t *size, int block);

/* Set once, before there are teams. */
static get_task_memory *task_memory;
static struct rf_module_code libomp, guest;

struct start_tool_result {
    int (*initialize)(lookup_function *lookup, int device, union word *data);
    void (*finalize)(union word *data);
    union word data;
};

static void parallel_begin(union word *task, const void *frame, union word *region, unsigned threads, int flags,
                           const void *pc)
{
    (void)task, (void)frame, (void)threads, (void)flags, (void)pc;
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return;
    struct rf_omp_team *team = region->ptr = rf_omp_team_new(self);
    rf_omp_fork(team);
}

static void parallel_end(union word *region, union word *task, int flags, const void *pc)
{
    (void)task, (void)flags, (void)pc;
    struct rf_self *self = rf_atomic_self();
    if (!self || !region || !region->ptr)
        return;
    rf_omp_join(region->ptr);
    rf_omp_team_end(self, region->ptr);
    region->ptr = NULL;
}

static void implicit_task(int point, union word *region, union word *word, unsigned threads, unsigned index, int flags)
{
    (void)threads, (void)index;
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return;
    if (point == BEGIN) {
        /* The initial task has no region that was begun; its team is its own, and lasts. */
        struct rf_omp_team *team = region ? region->ptr : NULL;
        if (!team && !(flags & INITIAL_TASK))
            return;
        word->ptr = rf_omp_task_new(self, team ? team : rf_omp_team_new(self), NULL, 0, 0);
        if (team)
            rf_omp_member(team);
    } else if (word->ptr) {
        rf_omp_task_drop(self, word->ptr);
        word->ptr = NULL;
    }
}

static void task_create(union word *creator, const void *frame, union word *word, int flags, int depends, const void *pc)
{
    (void)frame, (void)flags, (void)depends, (void)pc;
    struct rf_self *self = rf_atomic_self();
    struct rf_omp_task *parent = creator ? creator->ptr : NULL;
    if (!self || !parent || !word)
        return;
    struct rf_omp_task *task = word->ptr = rf_omp_task_new(self, parent->team, parent, 0, 0);
    rf_omp_task_created(task);
}

/* As in guest/gomp.c: by the outermost counter. */
static void across(const struct rf_omp_task *task, const struct dependence *outermost)
{
    uintptr_t iteration = (uintptr_t)&task->team->across[outermost->variable.value % sizeof task->team->across];
    if (outermost->kind == SOURCE)
        rf_release(iteration, RF_O_USER);
    else
        rf_acquire(iteration, RF_O_USER);
}

static void dependences(union word *word, const struct dependence *list, int count)
{
    struct rf_self *self = rf_atomic_self();
    struct rf_omp_task *task = word ? word->ptr : NULL;
    if (self && task && count && (list->kind == SOURCE || list->kind == SINK))
        across(task, list);
    for (int i = 0; self && task && i < count; i++)
        if (list[i].kind >= RF_OMP_IN && list[i].kind <= RF_OMP_MUTEX)
            rf_omp_depends(self, task, (uintptr_t)list[i].variable.ptr, (enum rf_omp_depend)list[i].kind);
}

/* libomp keeps the memory of tasks, with the program's private data in it, for later ones. It says where that of the present task is,
 * which is still the one that ends. */
static void forget_task_memory(void)
{
    void *addr;
    size_t size;
    for (int block = 0, more = task_memory != NULL; more; block++) {
        size = 0;
        more = task_memory(&addr, &size, block);
        if (size)
            rf_range_clear((uintptr_t)addr, size);
    }
}

static void task_schedule(union word *prior, int status, union word *next)
{
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return;
    struct rf_omp_task *old = prior ? prior->ptr : NULL, *new = next ? next->ptr : NULL;
    if (old && old->parent && (status == COMPLETE || status == CANCELLED || status == DETACHED))
        rf_omp_task_end(old);
    if (old && old->parent && (status == COMPLETE || status == CANCELLED || status == LATE_FULFILLED)) {
        prior->ptr = NULL;
        rf_omp_task_drop(self, old);
        if (status != LATE_FULFILLED)
            forget_task_memory();
    }
    if (status == EARLY_FULFILLED || status == LATE_FULFILLED)
        rf_omp_fulfilled();
    if (new &&new->parent)
        rf_omp_task_begin(new); /* one that goes on after a break hears nothing new */
}

static void barrier(int point, const union word *region, struct rf_omp_task *task)
{
    if (point == BEGIN)
        rf_omp_arrive(task);
    else if (region && region->ptr) /* invariant 2 */
        rf_omp_leave(task);
}

static void sync_region(int kind, int point, union word *region, union word *word, const void *pc)
{
    (void)pc;
    struct rf_self *self = rf_atomic_self();
    struct rf_omp_task *task = word ? word->ptr : NULL;
    if (!self || !task)
        return;
    if (kind == TASKWAIT) {
        if (point == END)
            rf_omp_taskwait(task);
    } else if (kind == TASKGROUP) {
        if (point == BEGIN)
            rf_omp_group_begin(self, task);
        else
            rf_omp_group_end(self, task);
    } else if (kind != REDUCING) {
        barrier(point, region, task);
    }
}

/* A group's reductions are added up when its tasks are over, before its end is told. */
static void sync_region_wait(int kind, int point, union word *region, union word *word, const void *pc)
{
    (void)region, (void)pc;
    struct rf_omp_task *task = word ? word->ptr : NULL;
    if (kind == TASKGROUP && point == END && task && task->group && rf_atomic_self())
        rf_acquire((uintptr_t)&task->group->done, RF_O_USER);
}

/* Inside a barrier a thread adds up what others have left for it, who have arrived. */
static void reduction(int kind, int point, union word *region, union word *word, const void *pc)
{
    (void)kind, (void)region, (void)pc;
    struct rf_self *self = rf_atomic_self();
    struct rf_omp_task *task = word ? word->ptr : NULL;
    if (!self || !task)
        return;
    if (point == BEGIN)
        rf_acquire((uintptr_t)&task->team->barrier[task->round & 1], RF_O_USER);
    else
        rf_omp_arrive(task);
}

/* Invariant 3. Gates are never taken away: a lock that has the address of an older one has its gate. */
struct gate {
    uint64_t lock;
    uint32_t closed; /* 1 from acquired to released. A futex */
    struct gate *next;
};

#define GATES 1024u
static struct gate *gates[GATES]; /* chains that grow at their head */
static uint32_t gates_lock;

static struct gate *find_gate(struct gate *gate, uint64_t lock)
{
    while (gate && gate->lock != lock)
        gate = gate->next;
    return gate;
}

static struct gate *gate_of(struct rf_self *self, uint64_t lock)
{
    struct gate **chain = &gates[(lock >> 3 ^ lock >> 12) % GATES];
    struct gate *gate = find_gate(__atomic_load_n(chain, __ATOMIC_ACQUIRE), lock);
    if (gate)
        return gate;
    rf_busy_begin(self);
    rf_spin_lock(&gates_lock);
    gate = find_gate(*chain, lock);
    if (!gate) {
        gate = rf_take(sizeof *gate);
        gate->lock = lock;
        gate->next = *chain;
        __atomic_store_n(chain, gate, __ATOMIC_RELEASE);
    }
    rf_spin_unlock(&gates_lock);
    rf_busy_end(self);
    return gate;
}

static unsigned lock_flags(int kind)
{
    return kind == LOCK_NEST || kind == LOCK_TEST_NEST ? RF_L_RECURSIVE : 0;
}

static void mutex_acquire(int kind, unsigned hint, unsigned implementation, uint64_t lock, const void *pc)
{
    (void)hint, (void)implementation;
    if (rf_atomic_self())
        rf_lock_wanted(lock, lock_flags(kind), (uintptr_t)pc);
}

static void mutex_acquired(int kind, uint64_t lock, const void *pc)
{
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return;
    struct gate *gate = gate_of(self, lock);
    while (__atomic_exchange_n(&gate->closed, 1, __ATOMIC_ACQUIRE))
        rf_futex_wait(&gate->closed, 1);
    rf_lock_acquired(lock, lock_flags(kind), (uintptr_t)pc);
}

static void mutex_released(int kind, uint64_t lock, const void *pc)
{
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return;
    struct gate *gate = gate_of(self, lock);
    rf_lock_released(lock, lock_flags(kind), (uintptr_t)pc);
    __atomic_store_n(&gate->closed, 0, __ATOMIC_RELEASE);
    rf_futex_wake(&gate->closed);
}

static void lock_destroy(int kind, uint64_t lock, const void *pc)
{
    (void)kind;
    if (rf_atomic_self())
        rf_lock_destroyed(lock, (uintptr_t)pc);
}

/* libomp is not instrumented, but what it asks of libc is seen: memory that it hands from thread to thread by means of its own. Such
 * an access has the guest's function on top of its stack, and was called from libomp. */
bool rf_ompt_internal(uint32_t note)
{
    uintptr_t pcs[2];
    return libomp.to && rf_note_stack(note, pcs, 2) == 2 && rf_code_has(&guest, pcs[0]) && rf_code_has(&libomp, pcs[1]);
}

static int initialize(lookup_function *lookup, int device, union word *data)
{
    (void)device, (void)data;
    set_callback *set = (set_callback *)lookup("ompt_set_callback");
    if (!set)
        return 0;
    static const struct {
        int which;
        any_function *function;
    } callbacks[] = {
        { PARALLEL_BEGIN, (any_function *)parallel_begin },     { PARALLEL_END, (any_function *)parallel_end },
        { TASK_CREATE, (any_function *)task_create },           { TASK_SCHEDULE, (any_function *)task_schedule },
        { IMPLICIT_TASK, (any_function *)implicit_task },       { DEPENDENCES, (any_function *)dependences },
        { SYNC_REGION, (any_function *)sync_region },           { REDUCTION, (any_function *)reduction },
        { MUTEX_ACQUIRE, (any_function *)mutex_acquire },       { MUTEX_ACQUIRED, (any_function *)mutex_acquired },
        { MUTEX_RELEASED, (any_function *)mutex_released },     { LOCK_DESTROY, (any_function *)lock_destroy },
        { SYNC_REGION_WAIT, (any_function *)sync_region_wait },
    };
    for (unsigned i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
        set(callbacks[i].which, callbacks[i].function);
    task_memory = (get_task_memory *)lookup("ompt_get_task_memory");
    libomp = rf_code_with((uintptr_t)lookup);
    guest = rf_code_with((uintptr_t)initialize);
    rf_gomp_off = true;
    return 1; /* the tool stays */
}

static void finalize(union word *data)
{
    (void)data;
}

RF_EXPORT struct start_tool_result *ompt_start_tool(unsigned version, const char *runtime);

struct start_tool_result *ompt_start_tool(unsigned version, const char *runtime)
{
    (void)version, (void)runtime;
    static struct start_tool_result result = { initialize, finalize, { 0 } };
    return rf_started ? &result : NULL;
}
