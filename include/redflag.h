/* redflag.h: what a program can say to redflag, and hear from it. C11 and C++11, gcc and clang.
 *
 * 1. A program that includes this file links and runs without the runtime as well: then nothing is checked, every call does nothing,
 *    and a redflag_try block is a block. Functions of the runtime (redflag_rt_...) are weak; the ones without rt are for programs.
 * 2. `redflag cc` finds this file without a flag.
 * 3. Structs only grow at their ends.
 */
#ifndef REDFLAG_H
#define REDFLAG_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REDFLAG_WEAK __attribute__((weak, visibility("default")))
#define REDFLAG_UNUSED __attribute__((unused))
#define REDFLAG_INLINE static inline __attribute__((unused, always_inline)) /* without a frame of its own, at -O0 too */

/* ======== data-race exceptions: doc/exceptions.md ==========================================================================
 *
 * Under `redflag run --on-race=exception` a data race is an exception of the thread that is about to access. It is raised before the
 * access, which does not happen:
 *
 *     redflag_try {
 *         transfer(account);
 *     } redflag_catch (race) {
 *         log("%p: T%u and T%u", race->address, race->now.thread, race->before.thread);
 *     }
 *
 * Blocks nest, in one function or through calls; a race in a catch block belongs to the block outside. `break`, `return` and `goto`
 * may leave the block. Local variables that the block changes and the catch block reads are volatile: the way from the access to
 * the catch block is a longjmp(), and what functions in between have open stays open (locks, files, C++ objects).
 */

enum {
    REDFLAG_WRITE = 1,  /* a read otherwise */
    REDFLAG_ATOMIC = 2, /* by an atomic operation */
    REDFLAG_FREE = 8    /* by free(), which counts as a write to all of the block */
};

#define REDFLAG_DEPTH 16

struct redflag_access {
    void *address;
    size_t size;
    unsigned kind;             /* REDFLAG_WRITE ... */
    unsigned thread;           /* its number in reports: 0 is the main thread */
    int tid;                   /* the number that the kernel gave it */
    unsigned depth;            /* how many of the following are known */
    void *pcs[REDFLAG_DEPTH];  /* the access and its callers, innermost first: return addresses */
    uint32_t note;             /* the runtime's */
};

struct redflag_race {
    void *address; /* what both accessed, and how much of it */
    size_t size;
    struct redflag_access now;    /* the access that did not happen */
    struct redflag_access before; /* the other one, of another thread */
};

struct redflag_frame {
    jmp_buf place;
    struct redflag_frame *outer;
    uint64_t kept[8]; /* the runtime's */
    struct redflag_race race;
};

REDFLAG_WEAK void redflag_rt_enter(struct redflag_frame *frame);
REDFLAG_WEAK void redflag_rt_leave(struct redflag_frame *frame);
REDFLAG_WEAK void redflag_rt_raise(const struct redflag_race *race);
REDFLAG_WEAK void redflag_rt_report(const struct redflag_race *race);

static inline REDFLAG_UNUSED struct redflag_frame *redflag_enter(struct redflag_frame *frame)
{
    if (redflag_rt_enter)
        redflag_rt_enter(frame);
    return frame;
}

static inline REDFLAG_UNUSED void redflag_leave(struct redflag_frame *frame)
{
    if (redflag_rt_leave)
        redflag_rt_leave(frame);
}

#define redflag_try                                                                                                    \
    for (struct redflag_frame redflag_here __attribute__((cleanup(redflag_leave))),                                    \
         *volatile redflag_once = redflag_enter(&redflag_here);                                                        \
         redflag_once; redflag_once = NULL)                                                                            \
        if (!_setjmp(redflag_here.place))

#define redflag_catch(name) else for (const struct redflag_race *name = &redflag_here.race; name; name = NULL)

/* In a catch block: the race is for the block outside after all; without one, the thread ends as for a race that nobody catches. */
static inline REDFLAG_UNUSED void redflag_rethrow(const struct redflag_race *race)
{
    if (redflag_rt_raise)
        redflag_rt_raise(race);
}

/* A race that was caught is not reported; this reports it as a run without exceptions would. */
static inline REDFLAG_UNUSED void redflag_report(const struct redflag_race *race)
{
    if (redflag_rt_report)
        redflag_rt_report(race);
}

/* A function of the program that is asked first, in the thread that is about to access; NULL: none any more. It may leave by longjmp()
 * or pthread_exit(). Its own accesses are not checked. One for the whole program. */
enum redflag_choice {
    REDFLAG_RAISE,  /* as --on-race says */
    REDFLAG_ALLOW,  /* let the access happen, say nothing */
    REDFLAG_REPORT  /* report it, and let the access happen */
};
typedef enum redflag_choice redflag_handler(const struct redflag_race *race, void *context);

REDFLAG_WEAK void redflag_rt_on_race(redflag_handler *handler, void *context);

static inline REDFLAG_UNUSED void redflag_on_race(redflag_handler *handler, void *context)
{
    if (redflag_rt_on_race)
        redflag_rt_on_race(handler, context);
}

/* ======== transactions: doc/transactions.md ================================================================================
 *
 * What the thread accesses between begin and commit is one transaction: its accesses count as made at the commit, and transactions
 * that share a variable are ordered. They nest: the outermost commit counts. After an abort the accesses are forgotten; the program
 * has undone them. Programs of gcc -fgnu-tm need none of these.
 */

REDFLAG_WEAK void redflag_rt_txn_begin(void);
REDFLAG_WEAK void redflag_rt_txn_commit(void);
REDFLAG_WEAK void redflag_rt_txn_abort(void);

static inline REDFLAG_UNUSED void redflag_txn_begin(void)
{
    if (redflag_rt_txn_begin)
        redflag_rt_txn_begin();
}

static inline REDFLAG_UNUSED void redflag_txn_commit(void)
{
    if (redflag_rt_txn_commit)
        redflag_rt_txn_commit();
}

static inline REDFLAG_UNUSED void redflag_txn_abort(void)
{
    if (redflag_rt_txn_abort)
        redflag_rt_txn_abort();
}

/* ======== for runtimes of languages: doc/embedding.md ======================================================================
 *
 * A detector below a virtual machine sees the machine's accesses, locks, memory and threads, not those of the program that the machine
 * runs. With these five the machine tells it of the program's (Wood, Low-Level Abstractable Race Detection):
 *
 *   1. which accesses are the program's         redflag_read, redflag_write; redflag_system_begin and _end
 *   2. which synchronisation is                 redflag_lock, redflag_acquire, ...; or clocks: redflag_clock_...
 *   3. memory that is used again                redflag_clear_history
 *   4. objects that move                        redflag_copy_history, redflag_move_history
 *   5. which thread of the language runs        redflag_thread_...
 */

/* A point in the program, for accesses and frames: what reports and traces call it. It stays for ever; make each once. NULL stands for
 * the call of the function itself, and is what redflag_place returns without the runtime. */
REDFLAG_WEAK const void *redflag_rt_place(const char *function, const char *file, unsigned line);

REDFLAG_INLINE const void *redflag_place(const char *function, const char *file, unsigned line)
{
    return redflag_rt_place ? redflag_rt_place(function, file, line) : NULL;
}

/* A function of the program was called at this place, and is left: frames of reports. */
REDFLAG_WEAK void redflag_rt_call(const void *place);
REDFLAG_WEAK void redflag_rt_return(void);

REDFLAG_INLINE void redflag_call(const void *place)
{
    if (redflag_rt_call)
        redflag_rt_call(place);
}

REDFLAG_INLINE void redflag_return(void)
{
    if (redflag_rt_return)
        redflag_rt_return();
}

/* 1. An access of the program, at a place of its own. It is looked at wherever it is made; the access itself is the caller's. */
REDFLAG_WEAK void redflag_rt_read(const void *address, size_t size, const void *place);
REDFLAG_WEAK void redflag_rt_write(const void *address, size_t size, const void *place);

REDFLAG_INLINE void redflag_read(const void *address, size_t size, const void *place)
{
    if (redflag_rt_read)
        redflag_rt_read(address, size, place);
}

REDFLAG_INLINE void redflag_write(const void *address, size_t size, const void *place)
{
    if (redflag_rt_write)
        redflag_rt_write(address, size, place);
}

/* What the calling kernel thread does in between, and what threads that it creates do, is the runtime system's: accesses are not looked
 * at, synchronisation orders nothing. Calls of this interface are the program's all the same. Sections nest. A recording has both,
 * the system's with a mark. */
REDFLAG_WEAK void redflag_rt_system_begin(void);
REDFLAG_WEAK void redflag_rt_system_end(void);

REDFLAG_INLINE void redflag_system_begin(void)
{
    if (redflag_rt_system_begin)
        redflag_rt_system_begin();
}

REDFLAG_INLINE void redflag_system_end(void)
{
    if (redflag_rt_system_end)
        redflag_rt_system_end();
}

/* 2. Synchronisation of the program, on objects. What was done before a release comes before what is done after an acquire that follows
 * on the same object; each adds to those before. An object is an address; it moves and ends with the memory there (3, 4). */
REDFLAG_WEAK void redflag_rt_acquire(const void *object);
REDFLAG_WEAK void redflag_rt_release(const void *object);

REDFLAG_INLINE void redflag_acquire(const void *object)
{
    if (redflag_rt_acquire)
        redflag_rt_acquire(object);
}

REDFLAG_INLINE void redflag_release(const void *object)
{
    if (redflag_rt_release)
        redflag_rt_release(object);
}

/* A lock of the program: after it was taken, before it is given back. As often as it is taken; `shared`: for reading. Detectors that go
 * by locks, and reports, know it as one. */
REDFLAG_WEAK void redflag_rt_lock(const void *object, int shared);
REDFLAG_WEAK void redflag_rt_unlock(const void *object, int shared);

REDFLAG_INLINE void redflag_lock(const void *object, int shared)
{
    if (redflag_rt_lock)
        redflag_rt_lock(object, shared);
}

REDFLAG_INLINE void redflag_unlock(const void *object, int shared)
{
    if (redflag_rt_unlock)
        redflag_rt_unlock(object, shared);
}

/* The runtime system's own synchronisation, where neither pthreads nor compiled atomics show it. It orders nothing but a recording. */
REDFLAG_WEAK void redflag_rt_system_acquire(const void *object);
REDFLAG_WEAK void redflag_rt_system_release(const void *object);

REDFLAG_INLINE void redflag_system_acquire(const void *object)
{
    if (redflag_rt_system_acquire)
        redflag_rt_system_acquire(object);
}

REDFLAG_INLINE void redflag_system_release(const void *object)
{
    if (redflag_rt_system_release)
        redflag_rt_system_release(object);
}

/* ... and with clocks, below: for nothing else than this. */
struct redflag_clock;
REDFLAG_WEAK void redflag_rt_system_clock_add(struct redflag_clock *clock);
REDFLAG_WEAK void redflag_rt_system_clock_write(const struct redflag_clock *clock);

REDFLAG_INLINE void redflag_system_clock_add(struct redflag_clock *clock)
{
    if (redflag_rt_system_clock_add)
        redflag_rt_system_clock_add(clock);
}

REDFLAG_INLINE void redflag_system_clock_write(const struct redflag_clock *clock)
{
    if (redflag_rt_system_clock_write)
        redflag_rt_system_clock_write(clock);
}

/* The same with clocks that the runtime keeps: for synchronisation that is one with data, as of volatile fields and compare-and-swap. A
 * clock is not locked: two threads may read one, but nobody while it is changed. It holds nothing at first.
 *
 *   read   the clock := what the thread knows          (a release; what the clock held is gone)
 *   add    the clock := what it held and the thread knows
 *   write  the thread knows what the clock holds, too  (an acquire)
 *   join   `to` := what it held and what `from` holds  (into a new clock: a copy)
 */
REDFLAG_WEAK struct redflag_clock *redflag_rt_clock_new(void);
REDFLAG_WEAK void redflag_rt_clock_free(struct redflag_clock *clock);
REDFLAG_WEAK void redflag_rt_clock_read(struct redflag_clock *clock);
REDFLAG_WEAK void redflag_rt_clock_add(struct redflag_clock *clock);
REDFLAG_WEAK void redflag_rt_clock_write(const struct redflag_clock *clock);
REDFLAG_WEAK void redflag_rt_clock_join(struct redflag_clock *to, const struct redflag_clock *from);

REDFLAG_INLINE struct redflag_clock *redflag_clock_new(void)
{
    return redflag_rt_clock_new ? redflag_rt_clock_new() : NULL;
}

REDFLAG_INLINE void redflag_clock_free(struct redflag_clock *clock)
{
    if (redflag_rt_clock_free)
        redflag_rt_clock_free(clock);
}

REDFLAG_INLINE void redflag_clock_read(struct redflag_clock *clock)
{
    if (redflag_rt_clock_read)
        redflag_rt_clock_read(clock);
}

REDFLAG_INLINE void redflag_clock_add(struct redflag_clock *clock)
{
    if (redflag_rt_clock_add)
        redflag_rt_clock_add(clock);
}

REDFLAG_INLINE void redflag_clock_write(const struct redflag_clock *clock)
{
    if (redflag_rt_clock_write)
        redflag_rt_clock_write(clock);
}

REDFLAG_INLINE void redflag_clock_join(struct redflag_clock *to, const struct redflag_clock *from)
{
    if (redflag_rt_clock_join)
        redflag_rt_clock_join(to, from);
}

/* 3. The memory holds something new, or nothing any more: what was done there before is forgotten, and objects there are. Any alignment.
 * The caller keeps the program from it meanwhile, as it does for the memory itself. */
REDFLAG_WEAK void redflag_rt_clear_history(const void *address, size_t size);

REDFLAG_INLINE void redflag_clear_history(const void *address, size_t size)
{
    if (redflag_rt_clear_history)
        redflag_rt_clear_history(address, size);
}

/* 4. What was done to the bytes at `from` counts as done to those at `to`, too; what was done at `to` is forgotten. To move is to copy,
 * with the objects there, and to clear what is left of `from`. Any alignment; the two may overlap. One step for all other threads. */
REDFLAG_WEAK void redflag_rt_copy_history(const void *to, const void *from, size_t size);
REDFLAG_WEAK void redflag_rt_move_history(const void *to, const void *from, size_t size);

REDFLAG_INLINE void redflag_copy_history(const void *to, const void *from, size_t size)
{
    if (redflag_rt_copy_history)
        redflag_rt_copy_history(to, from, size);
}

REDFLAG_INLINE void redflag_move_history(const void *to, const void *from, size_t size)
{
    if (redflag_rt_move_history)
        redflag_rt_move_history(to, from, size);
}

/* 5. Threads of the language. `new`: one that is started by the calling thread, which it comes after. `run`: from now on the calling
 * kernel thread is this one, or itself again (NULL); this orders nothing. A thread runs on one kernel thread at a time, and the
 * kernel thread holds no lock of its own when it changes. `join`: it has ended, and all that it did comes before what the caller does
 * next. `end`: it has ended, and nobody joins it. After either the thread is gone; it must not be running. */
struct redflag_thread;

REDFLAG_WEAK struct redflag_thread *redflag_rt_thread_new(const char *name);
REDFLAG_WEAK void redflag_rt_thread_run(struct redflag_thread *thread);
REDFLAG_WEAK void redflag_rt_thread_join(struct redflag_thread *thread);
REDFLAG_WEAK void redflag_rt_thread_end(struct redflag_thread *thread);
REDFLAG_WEAK struct redflag_thread *redflag_rt_thread_now(void);

REDFLAG_INLINE struct redflag_thread *redflag_thread_new(const char *name)
{
    return redflag_rt_thread_new ? redflag_rt_thread_new(name) : NULL;
}

REDFLAG_INLINE void redflag_thread_run(struct redflag_thread *thread)
{
    if (redflag_rt_thread_run)
        redflag_rt_thread_run(thread);
}

REDFLAG_INLINE void redflag_thread_join(struct redflag_thread *thread)
{
    if (redflag_rt_thread_join)
        redflag_rt_thread_join(thread);
}

REDFLAG_INLINE void redflag_thread_end(struct redflag_thread *thread)
{
    if (redflag_rt_thread_end)
        redflag_rt_thread_end(thread);
}

REDFLAG_INLINE struct redflag_thread *redflag_thread_now(void)
{
    return redflag_rt_thread_now ? redflag_rt_thread_now() : NULL;
}

#ifdef __cplusplus
}
#endif

/* ======== data-race exceptions in C++ ======================================================================================
 *
 *     try {
 *         redflag::guard([&] { transfer(account); });
 *     } catch (const redflag::data_race &caught) {
 *         log(caught.race.address);
 *     }
 *
 * The exception is thrown by guard(): what it called is left by longjmp(), so that objects made there are not destroyed; from guard()
 * outwards it is an exception like any other. doc/exceptions.md says why no exception can pass through the access itself.
 */
#if defined(__cplusplus) && defined(__cpp_exceptions)
#include <exception>

namespace redflag
{
struct data_race : std::exception {
    redflag_race race;
    explicit data_race(const redflag_race &found) noexcept : race(found) {}
    const char *what() const noexcept override { return "data race"; }
};

template <class Function> void guard(Function &&function)
{
    redflag_try {
        function();
    } redflag_catch (race) {
        throw data_race(*race);
    }
}
}
#endif

#endif
