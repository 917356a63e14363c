/* Tasks, taskloops and locks of gcc's libgomp (guest/gomp.c).
 *
 * 1. libgomp is given a handle in place of the task's arguments; the arguments lie behind our record, copied when the task is created,
 *    by the program's own function if it has one (C++ copy constructors).
 * 2. The first word of the arguments of a detachable task is its event, and libgomp fills it in: so it is the first of a handle. The
 *    first two of a taskloop's are the iterations, the third its reductions.
 * 3. A task that is never run, since its region was cancelled, keeps its record.
 */
#include "guest/gomp.h"
#include "guest/locks.h"

enum { FLAG_DEPEND = 1 << 3, FLAG_NOGROUP = 1 << 11, FLAG_DETACH = 1 << 13 };

typedef void function_of_task(void *);
typedef void copy_of_args(void *, void *);

struct handle {
    void *event;
    struct rf_omp_task *task;
    function_of_task *function;
    void *args;
};

static void run(struct rf_omp_task *task, function_of_task *function, void *args)
{
    struct rf_self *self = rf_self();
    if (!self) { /* the process ends */
        function(args);
        return;
    }
    struct rf_gomp_outer outer = rf_gomp_enter(self, task);
    rf_omp_task_begin(task);
    function(args);
    rf_omp_task_end(task);
    rf_omp_task_drop(self, task);
    rf_gomp_exit(self, &outer);
}

static void run_task(void *data)
{
    const struct handle *handle = data;
    if (handle->event)
        memcpy(handle->args, &handle->event, sizeof handle->event);
    run(handle->task, handle->function, handle->args);
}

static void *copy_args(struct rf_omp_task *task, copy_of_args *copy, void *data, size_t size, size_t align)
{
    void *args = rf_omp_args(task, align);
    if (copy)
        copy(args, data);
    else if (size)
        memcpy(args, data, size);
    return args;
}

/* The addresses of depend clauses. Kinds have libgomp's numbers, which are those of rf_omp_depend. */
static void each_dependence(void **depend, void (*f)(struct rf_self *, struct rf_omp_task *, uintptr_t, enum rf_omp_depend),
                            struct rf_self *self, struct rf_omp_task *task)
{
    uintptr_t count = (uintptr_t)depend[0], out, mutex = 0, in, at = 2;
    if (count) { /* the first form: all, then those that write */
        out = (uintptr_t)depend[1];
        in = count - out;
    } else {
        count = (uintptr_t)depend[1];
        out = (uintptr_t)depend[2];
        mutex = (uintptr_t)depend[3];
        in = (uintptr_t)depend[4];
        at = 5;
    }
    for (uintptr_t i = 0; i < count; i++) {
        void *what = depend[at + i];
        if (i < out) {
            f(self, task, (uintptr_t)what, RF_OMP_OUT);
        } else if (i < out + mutex) {
            f(self, task, (uintptr_t)what, RF_OMP_MUTEX);
        } else if (i < out + mutex + in) {
            f(self, task, (uintptr_t)what, RF_OMP_IN);
        } else { /* a depend object: an address and its kind */
            void **object = what;
            uintptr_t kind = (uintptr_t)object[1];
            f(self, task, (uintptr_t)object[0], kind == RF_OMP_IN ? RF_OMP_IN : RF_OMP_OUT);
        }
    }
}

RF_INTERCEPT(void, GOMP_task,
             (function_of_task * function, void *data, copy_of_args *copy, long size, long align, bool deferred,
              unsigned flags, void **depend, int priority, void *detach))
{
    struct rf_scope scope = RF_ENTER(GOMP_task);
    struct rf_omp_task *parent = rf_gomp_task(&scope);
    if (!parent) {
        RF_REAL(GOMP_task)(function, data, copy, size, align, deferred, flags, depend, priority, detach);
        rf_leave(&scope);
        return;
    }
    size_t alignment = align > 0 ? (size_t)align : 1;
    struct rf_omp_task *task = rf_omp_task_new(scope.self, parent->team, parent, (size_t)size, alignment);
    struct handle handle = { NULL, task, function, copy_args(task, copy, data, (size_t)size, alignment) };
    if (flags & FLAG_DEPEND)
        each_dependence(depend, rf_omp_depends, scope.self, task);
    rf_omp_task_created(task);
    rf_gomp_begin(scope.self);
    RF_REAL(GOMP_task)
    (run_task, &handle, NULL, sizeof handle, _Alignof(struct handle), deferred, flags, depend, priority, detach);
    rf_gomp_end(scope.self);
    rf_leave(&scope);
}

/* One loop for both widths of its counter. */
struct loop_handle {
    uint64_t from, to;
    uintptr_t *reductions;
    struct rf_omp_task *task; /* NULL in the original, which copies are made from */
    function_of_task *function;
    void *args;
    /* of the original alone */
    copy_of_args *copy;
    void *data;
    size_t size, align;
    struct rf_omp_task *parent;
};

/* libgomp makes one more task of the loop. */
static void copy_loop(void *to, void *from)
{
    const struct loop_handle *original = from;
    struct loop_handle *handle = to;
    struct rf_self *self = rf_self();
    memcpy(handle, original, sizeof *handle);
    if (!self)
        return;
    struct rf_gomp_outer outer = rf_gomp_enter(self, original->parent); /* the copy is the program's */
    handle->task = rf_omp_task_new(self, original->parent->team, original->parent, original->size, original->align);
    handle->args = copy_args(handle->task, original->copy, original->data, original->size, original->align);
    rf_omp_task_created(handle->task);
    rf_gomp_exit(self, &outer);
}

static void run_loop(void *data)
{
    struct loop_handle *handle = data;
    memcpy(handle->args, &handle->from, 2 * sizeof handle->from);
    run(handle->task, handle->function, handle->args);
}

#define TASKLOOP(name, type)                                                                                                \
    RF_INTERCEPT(void, name,                                                                                                \
                 (function_of_task * function, void *data, copy_of_args *copy, long size, long align, unsigned flags,       \
                  unsigned long tasks, int priority, type start, type end, type step))                                      \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(name);                                                                             \
        struct rf_omp_task *parent = rf_gomp_task(&scope);                                                                  \
        if (!parent) {                                                                                                      \
            RF_REAL(name)(function, data, copy, size, align, flags, tasks, priority, start, end, step);                     \
            rf_leave(&scope);                                                                                               \
            return;                                                                                                         \
        }                                                                                                                   \
        struct loop_handle handle = { .function = function,                                                                 \
                                      .copy = copy,                                                                         \
                                      .data = data,                                                                         \
                                      .size = (size_t)size,                                                                 \
                                      .align = align > 0 ? (size_t)align : 1,                                               \
                                      .parent = parent };                                                                   \
        if (size >= (long)(3 * sizeof(uint64_t)))                                                                           \
            memcpy(&handle.reductions, (char *)data + 2 * sizeof(uint64_t), sizeof handle.reductions);                      \
        if (!(flags & FLAG_NOGROUP))                                                                                        \
            rf_omp_group_begin(scope.self, parent);                                                                         \
        rf_gomp_begin(scope.self);                                                                                          \
        RF_REAL(name)                                                                                                       \
        (run_loop, &handle, copy_loop, sizeof handle, _Alignof(struct loop_handle), flags, tasks, priority, start, end,     \
         step);                                                                                                             \
        rf_gomp_end(scope.self);                                                                                            \
        if (!(flags & FLAG_NOGROUP))                                                                                        \
            rf_omp_group_end(scope.self, parent);                                                                           \
        rf_leave(&scope);                                                                                                   \
    }

TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, unsigned long long)

/* Waiting for tasks, and what comes after it. */
#define TASK_POINT(name, parameters, arguments, before, after)                                                              \
    RF_INTERCEPT(void, name, parameters)                                                                                    \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(name);                                                                             \
        struct rf_omp_task *task = rf_gomp_task(&scope);                                                                    \
        if (task) {                                                                                                         \
            before;                                                                                                         \
            rf_gomp_begin(scope.self);                                                                                      \
        }                                                                                                                   \
        RF_REAL(name) arguments;                                                                                            \
        if (task) {                                                                                                         \
            rf_gomp_end(scope.self);                                                                                        \
            after;                                                                                                          \
        }                                                                                                                   \
        rf_leave(&scope);                                                                                                   \
    }

TASK_POINT(GOMP_taskwait, (void), (), , rf_omp_taskwait(task))
TASK_POINT(GOMP_taskyield, (void), (), , )
TASK_POINT(GOMP_taskgroup_start, (void), (), rf_omp_group_begin(scope.self, task), )
TASK_POINT(GOMP_taskgroup_end, (void), (), , rf_omp_group_end(scope.self, task))
TASK_POINT(GOMP_taskwait_depend, (void **depend), (depend), ,
           each_dependence(depend, rf_omp_taskwait_depend, scope.self, task))

RF_INTERCEPT(void, omp_fulfill_event, (void *event))
{
    struct rf_scope scope = RF_ENTER(omp_fulfill_event);
    if (scope.self)
        rf_omp_fulfilled();
    RF_REAL(omp_fulfill_event)(event);
    rf_leave(&scope);
}

/* The locks of omp.h. A nestable one counts. */
#define LOCKS(kind, flags)                                                                                                  \
    RF_INTERCEPT(void, omp_init_##kind, (void *lock))                                                                       \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(omp_init_##kind);                                                                  \
        if (scope.self && !rf_gomp_off)                                                                                     \
            rf_lock_created((uintptr_t)lock, flags, scope.pc);                                                              \
        RF_REAL(omp_init_##kind)(lock);                                                                                     \
        rf_leave(&scope);                                                                                                   \
    }                                                                                                                       \
    RF_INTERCEPT(void, omp_destroy_##kind, (void *lock))                                                                    \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(omp_destroy_##kind);                                                               \
        if (scope.self && !rf_gomp_off)                                                                                     \
            rf_lock_destroyed((uintptr_t)lock, scope.pc);                                                                   \
        RF_REAL(omp_destroy_##kind)(lock);                                                                                  \
        rf_leave(&scope);                                                                                                   \
    }                                                                                                                       \
    RF_INTERCEPT(void, omp_set_##kind, (void *lock))                                                                        \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(omp_set_##kind);                                                                   \
        if (scope.self && !rf_gomp_off)                                                                                     \
            rf_lock_wanted((uintptr_t)lock, flags, scope.pc);                                                               \
        RF_REAL(omp_set_##kind)(lock);                                                                                      \
        if (scope.self && !rf_gomp_off)                                                                                     \
            rf_lock_acquired((uintptr_t)lock, flags, scope.pc);                                                             \
        rf_leave(&scope);                                                                                                   \
    }                                                                                                                       \
    RF_INTERCEPT(void, omp_unset_##kind, (void *lock))                                                                      \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(omp_unset_##kind);                                                                 \
        if (scope.self && !rf_gomp_off)                                                                                     \
            rf_lock_released((uintptr_t)lock, flags, scope.pc);                                                             \
        RF_REAL(omp_unset_##kind)(lock);                                                                                    \
        rf_leave(&scope);                                                                                                   \
    }                                                                                                                       \
    RF_INTERCEPT(int, omp_test_##kind, (void *lock))                                                                        \
    {                                                                                                                       \
        struct rf_scope scope = RF_ENTER(omp_test_##kind);                                                                  \
        int taken = RF_REAL(omp_test_##kind)(lock);                                                                         \
        if (taken && scope.self && !rf_gomp_off)                                                                            \
            rf_lock_acquired((uintptr_t)lock, flags | RF_L_TRY, scope.pc);                                                  \
        rf_leave(&scope);                                                                                                   \
        return taken;                                                                                                       \
    }

LOCKS(lock, 0)
LOCKS(nest_lock, RF_L_RECURSIVE)
