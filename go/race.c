/* The race detector that Go programs are linked with by `redflag go`: the functions that Go's runtime calls under -race.
 *
 * Go's runtime switches to the stack of the kernel thread (g0) for each call and passes the goroutine's context, which __tsan_init and
 * __tsan_go_start made; it may be NULL where the runtime acts for itself. `pc` is a return address: pc - 1 lies in the call.
 * This file and all that it includes become one C file, which cgo compiles as a part of package runtime/race (go/README.md).
 */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* cgo's own choice leaves the loops over clocks as they are */
#endif

#include "go/accesses.h"
#include "go/atomics.h"
#include "go/detectors.h"
#include "go/goroutines.h"
#include "go/memory.h"
#include "go/objects.h"
#include "go/options.h"
#include "go/report.h"

/* ---- order ---- */

#define ON_OBJECT(rule, others_rule)                                                                                        \
    do {                                                                                                                    \
        if (!g || g->ignore)                                                                                                \
            return;                                                                                                         \
        epoch_room(g);                                                                                                      \
        uint32_t *lock;                                                                                                     \
        struct object *object = object_lock(cell_of(addr), addr, &lock);                                                    \
        if (others_listen())                                                                                                \
            others_rule;                                                                                                    \
        else                                                                                                                \
            rule(g, object);                                                                                                \
        spin_unlock(lock);                                                                                                  \
    } while (0)

void __tsan_acquire(struct goroutine *g, uintptr_t addr);
void __tsan_acquire(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_acquire, others_acquire(g, object));
}

void __tsan_release(struct goroutine *g, uintptr_t addr);
void __tsan_release(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_release, others_release(g, first_object(lock), object, false));
}

void __tsan_release_merge(struct goroutine *g, uintptr_t addr);
void __tsan_release_merge(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_release_merge, others_release(g, first_object(lock), object, true));
}

void __tsan_release_acquire(struct goroutine *g, uintptr_t addr);
void __tsan_release_acquire(struct goroutine *g, uintptr_t addr)
{
    ON_OBJECT(object_release_acquire, (others_acquire(g, object), others_release(g, first_object(lock), object, false)));
}

void __tsan_go_ignore_sync_begin(struct goroutine *g);
void __tsan_go_ignore_sync_begin(struct goroutine *g)
{
    if (g)
        g->ignore++;
}

void __tsan_go_ignore_sync_end(struct goroutine *g);
void __tsan_go_ignore_sync_end(struct goroutine *g)
{
    if (g && g->ignore)
        g->ignore--;
}

/* ---- goroutines, begin and end of the program ---- */

void __tsan_go_start(struct goroutine *parent, struct goroutine **child, uintptr_t pc);
void __tsan_go_start(struct goroutine *parent, struct goroutine **child, uintptr_t pc)
{
    *child = goroutine_begin(parent, pc);
}

void __tsan_go_end(struct goroutine *g);
void __tsan_go_end(struct goroutine *g)
{
    if (g)
        goroutine_end(g);
}

void __tsan_finalizer_goroutine(struct goroutine *g);
void __tsan_finalizer_goroutine(struct goroutine *g)
{
    goroutine_learn_all(g);
}

/* Go's processors: nothing of ours belongs to one. */
void __tsan_proc_create(void **processor);
void __tsan_proc_create(void **processor)
{
    static char any;
    *processor = &any;
}

void __tsan_proc_destroy(void *processor);
void __tsan_proc_destroy(void *processor)
{
    (void)processor;
}

void __tsan_report_count(uint64_t *count);
void __tsan_report_count(uint64_t *count)
{
    *count = __atomic_load_n(&report_count, __ATOMIC_RELAXED);
}

void __tsan_init(struct goroutine **first, void **processor, void (*callback)(uintptr_t, void *));
void __tsan_init(struct goroutine **first, void **processor, void (*callback)(uintptr_t, void *))
{
    go_callback = callback;
    steady.code_base = (uintptr_t)callback - (1u << 30);
    memory_begin();
    options_from("GORACE");
    options_from("REDFLAG_OPTIONS");
    others_begin();
    notes_begin();
    readers_begin();
    pages_at(GO_TOUCHED_AT, TOUCHED_SIZE);
    *first = goroutine_begin(NULL, 0);
    __tsan_proc_create(processor);
}

void __tsan_fini(void);
void __tsan_fini(void)
{
    exit(report_end());
}
