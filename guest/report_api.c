/* Questions of __tsan_on_report, or of a debugger that stopped there, about the report that is being made.
 *
 * They are answered from the record that was sent (report/record.h), while the program is told of it; at other times, and for an index
 * that is none, the answer is 0. A trace is a list of return addresses that ends with a null pointer if there is room.
 */
#include "guest/access.h"
#include "guest/heap.h"
#include "guest/intercept.h"
#include "guest/report_parts.h"
#include "guest/threads.h"

typedef const struct rf_record *record_t;

static bool of_libc(uintptr_t pc)
{
    static const char *const names[] = { "libc.so.", "ld-linux" };
    const struct rf_rec_module *module = rf_module_at(pc);
    const char *base = module ? module->path : "";
    for (const char *at = base; *at; at++)
        if (*at == '/')
            base = at + 1;
    for (unsigned i = 0; i < 2; i++) {
        unsigned same = 0;
        while (names[i][same] && base[same] == names[i][same])
            same++;
        if (!names[i][same])
            return true;
    }
    return false;
}

/* What libc runs below main() and below the first function of a thread is left out, as reports do. */
static void copy_trace(void **trace, unsigned long size, const struct rf_stack *stack)
{
    uint32_t count = stack->count;
    while (count > 1 && of_libc((uintptr_t)stack->pcs[count - 1]))
        count--;
    for (unsigned long i = 0; trace && i < size; i++)
        trace[i] = i < count ? (void *)(uintptr_t)stack->pcs[i] : NULL;
}

/* The report must be the current one: what it was handed out as. */
static record_t of(const void *report)
{
    return report && report == rf_report_current() ? report : NULL;
}

RF_EXPORT void *__tsan_get_current_report(void);
void *__tsan_get_current_report(void)
{
    return (void *)rf_report_current();
}

RF_EXPORT int __tsan_get_report_data(void *report, const char **description, int *count, int *stack_count, int *mop_count,
                                     int *loc_count, int *mutex_count, int *thread_count, int *unique_tid_count,
                                     void **sleep_trace, unsigned long trace_size);
int __tsan_get_report_data(void *report, const char **description, int *count, int *stack_count, int *mop_count,
                           int *loc_count, int *mutex_count, int *thread_count, int *unique_tid_count, void **sleep_trace,
                           unsigned long trace_size)
{
    static const char *const ids[] = {
#define RF_KIND(name, id, title, suppressed_by, rank, text) id,
#include "report/kinds.def"
#undef RF_KIND
    };
    record_t record = of(report);
    if (!record)
        return 0;
    *description = ids[record->kind];
    *count = (int)record->more; /* besides this one */
    *stack_count = (int)record->stack_count;
    *mop_count = (int)record->access_count;
    *loc_count = record->location.kind != RF_AT_NOWHERE;
    *mutex_count = (int)record->lock_count;
    *thread_count = (int)record->thread_count;
    *unique_tid_count = 0;
    for (unsigned long i = 0; sleep_trace && i < trace_size; i++)
        sleep_trace[i] = NULL;
    return 1;
}

RF_EXPORT int __tsan_get_report_stack(void *report, unsigned long index, void **trace, unsigned long trace_size);
int __tsan_get_report_stack(void *report, unsigned long index, void **trace, unsigned long trace_size)
{
    record_t record = of(report);
    if (!record || index >= record->stack_count)
        return 0;
    copy_trace(trace, trace_size, &record->stacks[index]);
    return 1;
}

RF_EXPORT int __tsan_get_report_mop(void *report, unsigned long index, int *tid, void **addr, int *size, int *write,
                                    int *atomic, void **trace, unsigned long trace_size);
int __tsan_get_report_mop(void *report, unsigned long index, int *tid, void **addr, int *size, int *write, int *atomic,
                          void **trace, unsigned long trace_size)
{
    record_t record = of(report);
    if (!record || index >= record->access_count)
        return 0;
    const struct rf_rec_access *access = &record->accesses[index];
    *tid = (int)access->thread;
    *addr = (void *)(uintptr_t)access->addr;
    *size = (int)access->size;
    *write = (access->flags & RF_RA_WRITE) != 0;
    *atomic = (access->flags & RF_RA_ATOMIC) != 0;
    copy_trace(trace, trace_size, &access->stack);
    return 1;
}

RF_EXPORT int __tsan_get_report_loc(void *report, unsigned long index, const char **type, void **addr, void **start,
                                    unsigned long *size, int *tid, int *fd, int *suppressable, void **trace,
                                    unsigned long trace_size);
int __tsan_get_report_loc(void *report, unsigned long index, const char **type, void **addr, void **start,
                          unsigned long *size, int *tid, int *fd, int *suppressable, void **trace, unsigned long trace_size)
{
    static const char *const types[] = { "none", "heap", "heap", "global", "stack", "tls", "fd" };
    record_t record = of(report);
    if (!record || index || record->location.kind == RF_AT_NOWHERE)
        return 0;
    const struct rf_rec_location *location = &record->location;
    *type = types[location->kind];
    *addr = (void *)(uintptr_t)(record->access_count ? record->accesses[0].addr : location->addr);
    *start = (void *)(uintptr_t)location->addr;
    *size = location->size;
    *tid = (int)location->thread;
    *fd = location->fd;
    *suppressable = 0;
    copy_trace(trace, trace_size, &location->stack);
    return 1;
}

RF_EXPORT int __tsan_get_report_loc_object_type(void *report, unsigned long index, const char **object_type);
int __tsan_get_report_loc_object_type(void *report, unsigned long index, const char **object_type)
{
    record_t record = of(report);
    if (!record || index || record->location.kind == RF_AT_NOWHERE)
        return 0;
    *object_type = record->location.text;
    return 1;
}

RF_EXPORT int __tsan_get_report_mutex(void *report, unsigned long index, unsigned long *mutex_id, void **addr,
                                      int *destroyed, void **trace, unsigned long trace_size);
int __tsan_get_report_mutex(void *report, unsigned long index, unsigned long *mutex_id, void **addr, int *destroyed,
                            void **trace, unsigned long trace_size)
{
    record_t record = of(report);
    if (!record || index >= record->lock_count)
        return 0;
    const struct rf_rec_lock *lock = &record->locks[index];
    *mutex_id = lock->number;
    *addr = (void *)(uintptr_t)lock->addr;
    *destroyed = 0;
    copy_trace(trace, trace_size, lock->created.count ? &lock->created : &lock->taken);
    return 1;
}

RF_EXPORT int __tsan_get_report_thread(void *report, unsigned long index, int *tid, unsigned long *os_id, int *running,
                                       const char **name, int *parent_tid, void **trace, unsigned long trace_size);
int __tsan_get_report_thread(void *report, unsigned long index, int *tid, unsigned long *os_id, int *running,
                             const char **name, int *parent_tid, void **trace, unsigned long trace_size)
{
    record_t record = of(report);
    if (!record || index >= record->thread_count)
        return 0;
    const struct rf_rec_thread *thread = &record->threads[index];
    *tid = (int)thread->number;
    *os_id = (unsigned long)thread->tid;
    *running = (thread->flags & RF_RT_RUNNING) != 0;
    *name = thread->name[0] ? thread->name : NULL;
    *parent_tid = thread->flags & RF_RT_MAIN ? -1 : (int)thread->parent;
    copy_trace(trace, trace_size, &thread->stack);
    return 1;
}

RF_EXPORT int __tsan_get_report_unique_tid(void *report, unsigned long index, int *tid);
int __tsan_get_report_unique_tid(void *report, unsigned long index, int *tid)
{
    (void)report;
    (void)index;
    (void)tid;
    return 0;
}

RF_EXPORT int __tsan_get_report_tag(void *report, unsigned long *tag);
int __tsan_get_report_tag(void *report, unsigned long *tag)
{
    record_t record = of(report);
    if (!record)
        return 0;
    *tag = 0;
    return 1;
}

/* Which block of the heap holds an address, by whom it was made: at any time. */
RF_EXPORT int __tsan_get_alloc_stack(uintptr_t addr, uintptr_t *trace, size_t size, int *thread_id, unsigned long *os_id);
int __tsan_get_alloc_stack(uintptr_t addr, uintptr_t *trace, size_t size, int *thread_id, unsigned long *os_id)
{
    struct rf_block block;
    struct rf_thread_facts facts;
    if (!rf_started || !rf_heap_block(addr, &block) || block.freed)
        return 0;
    *thread_id = (int)block.thread;
    *os_id = rf_thread_facts(block.thread, &facts) ? (unsigned long)facts.tid : 0;
    unsigned count = block.note && size ? rf_note_stack(block.note, trace, (unsigned)(size < 4096 ? size : 4096)) : 0;
    return (int)count;
}

RF_EXPORT const char *__tsan_locate_address(uintptr_t addr, char *name, size_t name_size, uintptr_t *region_address,
                                            size_t *region_size);
const char *__tsan_locate_address(uintptr_t addr, char *name, size_t name_size, uintptr_t *region_address,
                                  size_t *region_size)
{
    struct rf_block block;
    if (name_size)
        name[0] = 0;
    *region_address = addr;
    *region_size = 0;
    if (!rf_started)
        return "";
    if (rf_heap_block(addr, &block)) {
        *region_address = block.addr;
        *region_size = block.size;
        return "heap";
    }
    struct rf_self *self = rf_self();
    uintptr_t low;
    size_t size;
    if (self && rf_thread_stack(self, &low, &size) && addr - low < size)
        return "stack";
    return "";
}
