/* Mappings and modules: new memory has no past.
 *
 * 1. History is forgotten before memory goes back to the kernel, while nobody else can have been given the addresses, and again
 *    when a mapping is made: it may have been unmapped behind our back.
 * 2. After mremap() and dlclose() it is forgotten late: another thread may already have mapped something there, which then loses the
 *    beginning of its history. A race may be missed so, none is invented unless a lock lies there.
 * 3. The guest's own regions are not for the program: mapping over them fails as if there were no memory.
 * 4. dlopen() and dlclose() run the program's constructors and destructors, which are looked at.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/heap.h"
#include "guest/libc.h"
#include "guest/memory.h"
#include "guest/planes.h"
#include "guest/system.h"

#define PAGE ((size_t)4096)
#define USER_END ((uintptr_t)1 << 47) /* the kernel refuses what goes beyond */

static inline size_t whole_pages(size_t size)
{
    return (size + PAGE - 1) & ~(PAGE - 1);
}

/* New memory: histories and synchronisation objects of what was there go. Mapping it counts as a write, so that a use which is not
 * ordered after it is a race; to its first page only, since a history for all of it would cost as much as the mapping. */
static void mapped(const struct rf_scope *scope, void *addr, size_t size)
{
    if (!scope->self || addr == MAP_FAILED)
        return;
    rf_range_return((uintptr_t)addr, whole_pages(size));
    rf_range_write(addr, size < PAGE ? size : PAGE, scope->pc);
}

static bool refused(const void *addr, size_t size, int flags)
{
    return rf_started && flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) && rf_planes_overlap((uintptr_t)addr, size);
}

#define MAPS(name)                                                                                       \
    RF_INTERCEPT(void *, name, (void *addr, size_t size, int prot, int flags, int fd, off_t offset))     \
    {                                                                                                    \
        struct rf_scope scope = RF_ENTER(name);                                                          \
        void *result = MAP_FAILED;                                                                       \
        if (refused(addr, size, flags))                                                                  \
            errno = ENOMEM;                                                                              \
        else                                                                                             \
            result = RF_REAL(name)(addr, size, prot, flags, fd, offset);                                 \
        mapped(&scope, result, size);                                                                    \
        rf_leave(&scope);                                                                                \
        return result;                                                                                   \
    }
MAPS(mmap)
MAPS(mmap64)

RF_INTERCEPT(int, munmap, (void *addr, size_t size))
{
    struct rf_scope scope = RF_ENTER(munmap);
    int result = -1;
    if (rf_started && rf_planes_overlap((uintptr_t)addr, size)) {
        errno = EINVAL;
    } else {
        if (scope.self && size && !((uintptr_t)addr % PAGE) && (uintptr_t)addr < USER_END && size <= USER_END - (uintptr_t)addr)
            rf_range_return((uintptr_t)addr, whole_pages(size)); /* invariant 1: only if the call will do something */
        result = RF_REAL(munmap)(addr, size);
    }
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(void *, mremap, (void *old, size_t old_size, size_t size, int flags, ...))
{
    __builtin_va_list list;
    __builtin_va_start(list, flags);
    void *wanted = flags & MREMAP_FIXED ? __builtin_va_arg(list, void *) : NULL;
    __builtin_va_end(list);
    struct rf_scope scope = RF_ENTER(mremap);
    void *result = MAP_FAILED;
    if (flags & MREMAP_FIXED && rf_started && rf_planes_overlap((uintptr_t)wanted, size))
        errno = ENOMEM;
    else
        result = RF_REAL(mremap)(old, old_size, size, flags, wanted);
    if (scope.self && result != MAP_FAILED) {
        uintptr_t before = (uintptr_t)old, now = (uintptr_t)result;
        old_size = whole_pages(old_size);
        size = whole_pages(size);
        if (now != before) {
            if (!(flags & MREMAP_DONTUNMAP))
                rf_range_return(before, old_size);
            rf_range_return(now, size);
        } else if (size < old_size) {
            rf_range_return(before + size, old_size - size);
        } else if (size > old_size) {
            rf_range_return(before + old_size, size - old_size);
        }
    }
    rf_leave(&scope);
    return result;
}

/* All of memory includes the guest's regions, which are larger than any machine's: the kernel would fill them with pages. So this does
 * nothing, and says that it did; memory that is locked by its address is. */
RF_INTERCEPT(int, mlockall, (int flags))
{
    if (!rf_started)
        return RF_REAL(mlockall)(flags);
    if (flags && !(flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) && flags != MCL_ONFAULT)
        return 0;
    errno = EINVAL;
    return -1;
}

/* The end of the data segment. */
RF_INTERCEPT(void *, sbrk, (intptr_t step))
{
    struct rf_scope scope = RF_ENTER(sbrk);
    if (scope.self && step < 0)
        rf_range_return((uintptr_t)RF_REAL(sbrk)(0) + (uintptr_t)step, (size_t)-step);
    char *result = RF_REAL(sbrk)(step);
    if (scope.self && step > 0 && result != (char *)-1)
        rf_range_return((uintptr_t)result, (size_t)step);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, brk, (void *end))
{
    struct rf_scope scope = RF_ENTER(brk);
    uintptr_t before = (uintptr_t)RF_REAL(sbrk)(0), after = (uintptr_t)end;
    if (scope.self && after < before)
        rf_range_return(after, before - after);
    int result = RF_REAL(brk)(end);
    if (scope.self && !result && after > before)
        rf_range_return(before, after - before);
    rf_leave(&scope);
    return result;
}

/* What shmdt() does not say: how large a segment is. A list that only grows at its head and is searched without a lock: entries
 * are never taken out, an address of 0 is free to be used again. */
struct segment {
    struct segment *next;
    uintptr_t addr;
    size_t size;
};
static struct segment *segments;

static void segment_known(uintptr_t addr, size_t size)
{
    for (struct segment *s = __atomic_load_n(&segments, __ATOMIC_ACQUIRE); s; s = s->next) {
        uintptr_t none = 0;
        if (__atomic_compare_exchange_n(&s->addr, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            s->size = size;
            __atomic_store_n(&s->addr, addr, __ATOMIC_RELEASE);
            return;
        }
    }
    struct segment *s = rf_take(sizeof *s);
    s->addr = addr;
    s->size = size;
    s->next = __atomic_load_n(&segments, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&segments, &s->next, s, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

RF_INTERCEPT(void *, shmat, (int id, const void *addr, int flags))
{
    struct rf_scope scope = RF_ENTER(shmat);
    void *result = RF_REAL(shmat)(id, addr, flags);
    struct shmid_ds facts;
    if (scope.self && result != (void *)-1 && RF_SYSCALL(SYS_shmctl, id, IPC_STAT, &facts) >= 0) {
        rf_range_return((uintptr_t)result, whole_pages(facts.shm_segsz));
        segment_known((uintptr_t)result, whole_pages(facts.shm_segsz));
    }
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, shmdt, (const void *addr))
{
    struct rf_scope scope = RF_ENTER(shmdt);
    for (struct segment *s = __atomic_load_n(&segments, __ATOMIC_ACQUIRE); s && addr; s = s->next)
        if (__atomic_load_n(&s->addr, __ATOMIC_ACQUIRE) == (uintptr_t)addr) {
            if (scope.self)
                rf_range_return(s->addr, s->size);
            __atomic_store_n(&s->addr, 0, __ATOMIC_RELEASE);
            break;
        }
    int result = RF_REAL(shmdt)(addr);
    rf_leave(&scope);
    return result;
}

/* --- modules --------------------------------------------------------------------------------------------------------------- */

void rf_module_loaded(void) __attribute__((weak));

typedef int phdr_fn(struct dl_phdr_info *, size_t, void *);

RF_INTERCEPT(int, dl_iterate_phdr, (phdr_fn *f, void *data));

struct modules {
    unsigned count, room;
    struct module {
        uintptr_t begin, end;
        bool seen;
    } *list;
};

static void span_of(const struct dl_phdr_info *info, uintptr_t *begin, uintptr_t *end)
{
    *begin = UINTPTR_MAX;
    *end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type != PT_LOAD)
            continue;
        uintptr_t from = info->dlpi_addr + h->p_vaddr, to = from + h->p_memsz;
        *begin = from < *begin ? from : *begin;
        *end = to > *end ? to : *end;
    }
}

static int note_module(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct modules *all = data;
    if (all->count < all->room)
        span_of(info, &all->list[all->count].begin, &all->list[all->count].end);
    all->count++;
    return 0;
}

static int see_module(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct modules *all = data;
    uintptr_t begin, end;
    span_of(info, &begin, &end);
    for (unsigned i = 0; i < all->count; i++)
        if (all->list[i].begin == begin && all->list[i].end == end)
            all->list[i].seen = true;
    return 0;
}

/* The module that calls dlopen() decides where libraries are looked for: so the loader must find its address as the return address.
 * It returns to a `ret` in that module's own text, and from there to us. */
static void *returned_through(void *ret, void *(*real)(const char *, int), const char *name, int flags)
{
    void *result;
    __asm__ volatile("push %%rbp\n\t"
                     "mov %%rsp, %%rbp\n\t"
                     "and $-16, %%rsp\n\t"
                     "sub $8, %%rsp\n\t"
                     "lea 1f(%%rip), %%rax\n\t"
                     "push %%rax\n\t" /* where the `ret` goes */
                     "push %%rcx\n\t" /* where the loader returns to; the stack is as after a call */
                     "jmp *%%rdx\n"
                     "1:\tmov %%rbp, %%rsp\n\t"
                     "pop %%rbp"
                     : "=&a"(result), "+D"(name), "+S"(flags), "+c"(ret), "+d"(real)
                     :
                     : "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return result;
}

/* A `ret` behind the call, within the page: functions end in one. */
static void *find_ret(const unsigned char *from)
{
    const unsigned char *end = (const unsigned char *)(((uintptr_t)from | (PAGE - 1)) + 1);
    for (const unsigned char *at = from; at < end; at++)
        if (*at == 0xc3)
            return (void *)at;
    return NULL;
}

RF_INTERCEPT(void *, dlopen, (const char *name, int flags))
{
    struct rf_scope scope = RF_ENTER(dlopen);
    if (scope.self)
        RS(name);
    void *ret = find_ret(__builtin_return_address(0));
    void *result = ret ? returned_through(ret, RF_REAL(dlopen), name, flags) : RF_REAL(dlopen)(name, flags);
    if (scope.self && result && rf_module_loaded && rf_options.patch_calls)
        rf_module_loaded();
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, dlclose, (void *handle))
{
    struct rf_scope scope = RF_ENTER(dlclose);
    if (!scope.self)
        return RF_REAL(dlclose)(handle);
    struct modules all = { 0, 0, NULL };
    RF_REAL(dl_iterate_phdr)(note_module, &all);
    all.room = all.count + 64; /* some may be loaded in between */
    size_t size = all.room * sizeof *all.list;
    all.list = rf_take(size);
    all.count = 0;
    RF_REAL(dl_iterate_phdr)(note_module, &all);
    if (all.count > all.room)
        all.count = all.room;
    int result = RF_REAL(dlclose)(handle);
    RF_REAL(dl_iterate_phdr)(see_module, &all);
    for (unsigned i = 0; i < all.count; i++)
        if (!all.list[i].seen && all.list[i].end)
            rf_range_return(all.list[i].begin & ~(PAGE - 1), whole_pages(all.list[i].end - (all.list[i].begin & ~(PAGE - 1))));
    rf_give(all.list, size);
    rf_leave(&scope);
    return result;
}

/* The loader allocates names, and frees them under a lock that we do not see, but that is held while a callback runs: to a callback
 * they are new, and what it did with them is forgotten. */
struct callback {
    phdr_fn *f;
    void *data;
};

static void forget_name(const char *name)
{
    struct rf_block block;
    if (name && rf_heap_block((uintptr_t)name, &block))
        rf_range_clear((uintptr_t)name, rf_length(name) + 1);
}

static int call_back(struct dl_phdr_info *info, size_t size, void *data)
{
    const struct callback *callback = data;
    const char *name = info->dlpi_name;
    forget_name(name);
    rf_range_clear((uintptr_t)info, size);
    int result = callback->f(info, size, callback->data);
    forget_name(name);
    return result;
}

static int rf_icpt_dl_iterate_phdr(phdr_fn *f, void *data)
{
    struct rf_scope scope = RF_ENTER(dl_iterate_phdr);
    if (!scope.self)
        return RF_REAL(dl_iterate_phdr)(f, data);
    /* The callback may be the first to call a function of libc's, and the loader lets nobody look for it while it tells of modules: a thread that
     * loads one has the lock for that, and waits for the telling to end. */
    rf_find_all_real();
    struct callback callback = { f, data };
    int result = RF_REAL(dl_iterate_phdr)(call_back, &callback);
    rf_leave(&scope);
    return result;
}
