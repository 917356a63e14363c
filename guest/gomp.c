/* gcc's libgomp, which is not instrumented and synchronises by futexes that nobody sees: its interface, and what it orders.
 *
 * 1. A region's function and a task's function are wrapped, so that the begin and the end of each is known on the thread that runs it.
 *    libgomp is given a small block of ours in place of the program's data; arguments of tasks are copied by us, as libgomp would.
 * 2. While libgomp itself runs, the thread's accesses (memcpy, malloc, free) are not looked at and its synchronisation orders nothing:
 *    it has its own, which is modelled here. Inside regions and tasks the thread is itself again. A thread of libgomp's pool stays
 *    silent between regions.
 * 3. A task runs under the clock of the thread that runs it. So two tasks that happened to run on one thread one after the other are
 *    ordered, as that thread was.
 * 4. Work shares (loop_*_start, loop_*_next, sections_*, single_start) order nothing: only their ends do, which are barriers.
 * 5. With LLVM's libomp, which has these names for binaries of gcc, too, the real functions are libomp's. Its own events say more
 *    then (guest/ompt.c), and everything here only calls on.
 */
#include <dlfcn.h>
#include <stdarg.h>

#include "guest/gomp.h"
#include "guest/locks.h"

bool rf_gomp_off;

RF_TLS struct rf_omp_task *rf_gomp_current;

void *rf_gomp_find(const char *name)
{
    static const char *const runtimes[] = { "libgomp.so.1", "libomp.so.5", "libomp.so" };
    typedef void *open_function(const char *file, int flags);
    void *found = dlsym(RTLD_NEXT, name);
    for (unsigned i = 0; !found && i < sizeof runtimes / sizeof *runtimes; i++) {
        void *runtime = ((open_function *)rf_find_real("dlopen"))(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
        found = runtime ? dlsym(runtime, name) : NULL;
    }
    return found ? found : rf_find_real(name); /* which says what is wrong */
}

/* Regions. */
struct region {
    uintptr_t *reductions; /* first: GOMP_parallel_reductions reads it through the data it is given */
    void (*function)(void *);
    void *data;
    struct rf_omp_team *team;
    struct rf_self *master;
};

static void run_region(void *data)
{
    const struct region *region = data;
    struct rf_self *self = rf_self();
    if (!self) { /* the process ends */
        region->function(region->data);
        return;
    }
    struct rf_omp_task *task = rf_omp_task_new(self, region->team, NULL, 0, 0);
    struct rf_gomp_outer outer = rf_gomp_enter(self, task);
    rf_omp_member(region->team);
    region->function(region->data);
    rf_omp_member_end(region->team);
    if (self != region->master)
        outer = (struct rf_gomp_outer){ NULL, 1, 1, 1 };
    rf_gomp_exit(self, &outer);
    /* Tasks that are left run in the barrier that follows, and hold on to it. */
    rf_omp_task_drop(self, task);
}

static void region_begin(struct region *region, struct rf_self *self, void (*function)(void *), void *data)
{
    *region = (struct region){ .function = function, .data = data, .team = rf_omp_team_new(self), .master = self };
    rf_omp_fork(region->team);
    rf_gomp_begin(self);
}

static void region_end(struct region *region)
{
    rf_gomp_end(region->master);
    rf_omp_join(region->team);
    rf_omp_team_end(region->master, region->team);
}

#define REGION(name, parameters, outside, inside)                                                                           \
    RF_INTERCEPT(void, name, parameters)                                                                                    \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(name);                                                                             \
        if (!scope.self || rf_gomp_off) {                                                                                   \
            RF_REAL(name) outside;                                                                                          \
        } else {                                                                                                            \
            struct region region;                                                                                           \
            region_begin(&region, scope.self, function, data);                                                              \
            RF_REAL(name) inside;                                                                                           \
            region_end(&region);                                                                                            \
        }                                                                                                                   \
        rf_leave(&scope);                                                                                                   \
    }

REGION(GOMP_parallel, (void (*function)(void *), void *data, unsigned threads, unsigned flags),
       (function, data, threads, flags), (run_region, &region, threads, flags))
REGION(GOMP_parallel_sections, (void (*function)(void *), void *data, unsigned threads, unsigned count, unsigned flags),
       (function, data, threads, count, flags), (run_region, &region, threads, count, flags))

#define PARALLEL_LOOP(name)                                                                                                 \
    REGION(name,                                                                                                            \
           (void (*function)(void *), void *data, unsigned threads, long start, long end, long step, long chunk,            \
            unsigned flags),                                                                                                \
           (function, data, threads, start, end, step, chunk, flags),                                                       \
           (run_region, &region, threads, start, end, step, chunk, flags))
PARALLEL_LOOP(GOMP_parallel_loop_static)
PARALLEL_LOOP(GOMP_parallel_loop_dynamic)
PARALLEL_LOOP(GOMP_parallel_loop_guided)
PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_guided)

#define PARALLEL_LOOP_RUNTIME(name)                                                                                         \
    REGION(name, (void (*function)(void *), void *data, unsigned threads, long start, long end, long step, unsigned flags), \
           (function, data, threads, start, end, step, flags), (run_region, &region, threads, start, end, step, flags))
PARALLEL_LOOP_RUNTIME(GOMP_parallel_loop_runtime)
PARALLEL_LOOP_RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
PARALLEL_LOOP_RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

RF_INTERCEPT(unsigned, GOMP_parallel_reductions, (void (*function)(void *), void *data, unsigned threads, unsigned flags))
{
    struct rf_scope scope = RF_ENTER(GOMP_parallel_reductions);
    unsigned result;
    if (!scope.self || rf_gomp_off) {
        result = RF_REAL(GOMP_parallel_reductions)(function, data, threads, flags);
    } else {
        struct region region;
        region_begin(&region, scope.self, function, data);
        memcpy(&region.reductions, data, sizeof region.reductions);
        result = RF_REAL(GOMP_parallel_reductions)(run_region, &region, threads, flags);
        region_end(&region);
    }
    rf_leave(&scope);
    return result;
}

/* Barriers. */
#define BARRIER(type, name, parameters, arguments, result, give_back)                                                       \
    RF_INTERCEPT(type, name, parameters)                                                                                    \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(name);                                                                             \
        struct rf_omp_task *task = rf_gomp_task(&scope);                                                                    \
        if (task) {                                                                                                         \
            rf_omp_arrive(task);                                                                                            \
            rf_gomp_begin(scope.self);                                                                                      \
        }                                                                                                                   \
        result RF_REAL(name) arguments;                                                                                     \
        if (task) {                                                                                                         \
            rf_gomp_end(scope.self);                                                                                        \
            rf_omp_leave(task);                                                                                             \
        }                                                                                                                   \
        rf_leave(&scope);                                                                                                   \
        give_back;                                                                                                          \
    }

BARRIER(void, GOMP_barrier, (void), (), , )
BARRIER(void, GOMP_loop_end, (void), (), , )
BARRIER(void, GOMP_sections_end, (void), (), , )
BARRIER(bool, GOMP_barrier_cancel, (void), (), bool cancelled =, return cancelled)
BARRIER(bool, GOMP_loop_end_cancel, (void), (), bool cancelled =, return cancelled)
BARRIER(bool, GOMP_sections_end_cancel, (void), (), bool cancelled =, return cancelled)
BARRIER(void, GOMP_workshare_task_reduction_unregister, (bool cancelled), (cancelled), , )

/* single copyprivate: one thread executes and hands its data to the others, who wait for it. */
RF_INTERCEPT(void *, GOMP_single_copy_start, (void))
{
    struct rf_scope scope = RF_ENTER(GOMP_single_copy_start);
    struct rf_omp_task *task = rf_gomp_task(&scope);
    if (task) {
        rf_omp_arrive(task);
        rf_gomp_begin(scope.self);
    }
    void *data = RF_REAL(GOMP_single_copy_start)();
    if (task) {
        rf_gomp_end(scope.self);
        if (data)
            rf_omp_leave(task);
    }
    rf_leave(&scope);
    return data;
}

BARRIER(void, GOMP_single_copy_end, (void *data), (data), , )

/* Mutual exclusion. */
static char critical, atomic;

#define LOCK(name, parameters, arguments, place)                                                                            \
    RF_INTERCEPT(void, name, parameters)                                                                                    \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(name);                                                                             \
        bool told = scope.self && !rf_gomp_off;                                                                             \
        if (told)                                                                                                           \
            rf_lock_wanted((uintptr_t)(place), 0, scope.pc);                                                                \
        RF_REAL(name) arguments;                                                                                            \
        if (told)                                                                                                           \
            rf_lock_acquired((uintptr_t)(place), 0, scope.pc);                                                              \
        rf_leave(&scope);                                                                                                   \
    }
#define UNLOCK(name, parameters, arguments, place)                                                                          \
    RF_INTERCEPT(void, name, parameters)                                                                                    \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(name);                                                                             \
        if (scope.self && !rf_gomp_off)                                                                                     \
            rf_lock_released((uintptr_t)(place), 0, scope.pc);                                                              \
        RF_REAL(name) arguments;                                                                                            \
        rf_leave(&scope);                                                                                                   \
    }

LOCK(GOMP_critical_start, (void), (), &critical)
UNLOCK(GOMP_critical_end, (void), (), &critical)
LOCK(GOMP_critical_name_start, (void **name), (name), name)
UNLOCK(GOMP_critical_name_end, (void **name), (name), name)
LOCK(GOMP_atomic_start, (void), (), &atomic)
UNLOCK(GOMP_atomic_end, (void), (), &atomic)

RF_INTERCEPT(void, GOMP_ordered_start, (void))
{
    struct rf_scope scope = RF_ENTER(GOMP_ordered_start);
    RF_REAL(GOMP_ordered_start)();
    if (rf_gomp_task(&scope))
        rf_acquire((uintptr_t)&rf_gomp_current->team->ordered, RF_O_USER);
    rf_leave(&scope);
}

RF_INTERCEPT(void, GOMP_ordered_end, (void))
{
    struct rf_scope scope = RF_ENTER(GOMP_ordered_end);
    if (rf_gomp_task(&scope))
        rf_release((uintptr_t)&rf_gomp_current->team->ordered, RF_O_USER);
    RF_REAL(GOMP_ordered_end)();
    rf_leave(&scope);
}

/* doacross loops: an iteration that was posted comes before who waits for it. Known by the outermost counter alone: in nested loops
 * that is more order than there is, never less. */
static uintptr_t iteration(unsigned long long outermost)
{
    return (uintptr_t)&rf_gomp_current->team->across[outermost % sizeof rf_gomp_current->team->across];
}

#define POST(name, type)                                                                                                    \
    RF_INTERCEPT(void, name, (type * counts))                                                                               \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(name);                                                                             \
        if (rf_gomp_task(&scope))                                                                                           \
            rf_release(iteration((unsigned long long)*counts), RF_O_USER);                                                  \
        RF_REAL(name)(counts);                                                                                              \
        rf_leave(&scope);                                                                                                   \
    }

/* How many counters follow only libgomp knows; nobody nests more loops than this. */
#define WAIT(name, type)                                                                                                    \
    RF_INTERCEPT(void, name, (type first, ...))                                                                             \
    {                                                                                                                       \
        type c[15];                                                                                                         \
        va_list list;                                                                                                       \
        va_start(list, first);                                                                                              \
        for (unsigned i = 0; i < sizeof c / sizeof *c; i++)                                                                 \
            c[i] = va_arg(list, type);                                                                                      \
        va_end(list);                                                                                                       \
        struct rf_scope scope = RF_ENTER(name);                                                                             \
        RF_REAL(name)                                                                                                       \
        (first, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14]);             \
        if (rf_gomp_task(&scope))                                                                                           \
            rf_acquire(iteration((unsigned long long)first), RF_O_USER);                                                    \
        rf_leave(&scope);                                                                                                   \
    }

POST(GOMP_doacross_post, long)
POST(GOMP_doacross_ull_post, unsigned long long)
WAIT(GOMP_doacross_wait, long)
WAIT(GOMP_doacross_ull_wait, unsigned long long)
