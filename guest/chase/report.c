/* What was found, as a record for the reporter; and stacks.
 *
 * 1. Stacks come from libc's backtrace(), which walks the unwind tables: calls of hooks at functions' entries and exits, which would keep
 *    a stack of their own, are taken out of the code. libc loads what it needs for that at the start, not at the first race. It takes
 *    no lock afterwards.
 * 2. Reports are made one at a time, by the thread that came to s2, with its signals blocked.
 */
#include <dlfcn.h>
#include <sys/syscall.h>

#include "guest/access.h"
#include "guest/chase/chase.h"
#include "guest/embed.h"
#include "guest/options.h"
#include "guest/report_parts.h"
#include "guest/system.h"

/* -- stacks ---------------------------------------------------------------------------------------------------------------------- */

extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

static int (*find_stack)(void **, int);

void rf_chase_stack_begin(void)
{
    void *some[2];
    *(void **)&find_stack = dlsym(RTLD_NEXT, "backtrace");
    if (find_stack)
        find_stack(some, 2);
}

static bool is_ours(const void *pc)
{
    return (const char *)pc >= __ehdr_start && (const char *)pc < _end;
}

#define OURS 8 /* frames of this library that may be on top */

unsigned rf_chase_stack(const struct rf_chase_site *site, uintptr_t *pcs)
{
    void *frames[RF_CHASE_DEPTH + OURS];
    int count = find_stack ? find_stack(frames, RF_CHASE_DEPTH + OURS) : 0, from = 0;
    while (from < count && is_ours(frames[from]))
        from++;
    unsigned depth = 0;
    if (from == count || (uintptr_t)frames[from] != site->pc) /* a tail jump has left no trace of itself */
        pcs[depth++] = site->pc;
    for (; from < count && frames[from] && depth < RF_CHASE_DEPTH; from++)
        pcs[depth++] = (uintptr_t)frames[from];
    return depth;
}

/* Runtimes of languages name no places here: what they tell us does nothing. */
bool rf_place_name(uintptr_t pc, const char **function, const char **file, uint32_t *line)
{
    (void)pc, (void)function, (void)file, (void)line;
    return false;
}

/* -- reports --------------------------------------------------------------------------------------------------------------------- */

static uint32_t making; /* 0 free, 1 taken, 2 taken and somebody waits */

static void lock_reports(void)
{
    uint32_t was = 0;
    if (!__atomic_compare_exchange_n(&making, &was, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        while (__atomic_exchange_n(&making, 2, __ATOMIC_ACQUIRE))
            rf_futex_wait(&making, 2);
}

static void unlock_reports(void)
{
    if (__atomic_exchange_n(&making, 0, __ATOMIC_RELEASE) == 2)
        rf_futex_wake(&making);
}

static void add_access(struct rf_record *record, const struct rf_chase_side *side, bool previous)
{
    struct rf_rec_access *access = &record->accesses[record->access_count++];
    *access = (struct rf_rec_access){
        .addr = side->addr, .size = side->size, .flags = side->flags, .thread = side->thread, .previous = previous
    };
    access->stack.count = side->depth;
    access->stack.pcs = rf_scratch(side->depth * sizeof *access->stack.pcs + 1);
    for (unsigned i = 0; i < side->depth; i++)
        access->stack.pcs[i] = side->pcs[i];
}

static void add_thread(struct rf_record *record, const struct rf_chase_side *side)
{
    struct rf_rec_thread *thread = &record->threads[record->thread_count++];
    char path[64];
    *thread = (struct rf_rec_thread){ .number = side->thread, .tid = side->tid };
    thread->flags = RF_RT_RUNNING | (side->thread ? RF_RT_ORPHAN : RF_RT_MAIN);
    rf_format(path, sizeof path, "/proc/self/task/%d/comm", (int)side->tid);
    long fd = RF_SYSCALL(SYS_openat, -100 /* AT_FDCWD */, path, 0x80000 /* O_CLOEXEC */);
    long length = fd >= 0 ? RF_SYSCALL(SYS_read, fd, thread->name, 16) : 0;
    if (fd >= 0)
        RF_SYSCALL(SYS_close, fd);
    for (long i = 0; i < 64; i++)
        if (i >= length || thread->name[i] == '\n')
            thread->name[i] = 0;
}

void rf_chase_report(struct rf_chase_side *waits, struct rf_chase_side *comes)
{
    struct rf_rec_access accesses[2];
    struct rf_rec_thread threads[2];
    struct rf_record record = { .kind = RF_K_RACE, .accesses = accesses, .threads = threads };
    uint32_t count;
    uintptr_t addr = waits->addr > comes->addr ? waits->addr : comes->addr;
    if (!rf_options.report_bugs || (!rf_options.report_atomic_races && (waits->flags | comes->flags) & RF_A_ATOMIC))
        return;
    if ((waits->flags | comes->flags) & RF_A_VPTR)
        record.kind = RF_K_VPTR_RACE;
    lock_reports();
    rf_modules_now(&count);
    add_access(&record, comes, false);
    add_access(&record, waits, true);
    add_thread(&record, comes);
    add_thread(&record, waits);
    if (rf_module_at(addr))
        record.location = (struct rf_rec_location){ .kind = RF_AT_GLOBAL, .addr = addr };
    rf_report_show(&record);
    rf_scratch_free();
    unlock_reports();
}

int rf_chase_finish(int status)
{
    lock_reports();
    status = rf_report_end(status);
    unlock_reports();
    return status;
}

void rf_chase_report_fork_child(void)
{
    making = 0;
    rf_report_counts = (struct rf_report_counts){ 0 };
    rf_reporter_fork_child();
}
