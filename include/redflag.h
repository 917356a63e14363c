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
