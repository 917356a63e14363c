/* See guest/caper.h. */
#include "guest/caper.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "core/caper.h"
#include "guest/escape.h"
#include "guest/fd.h"
#include "guest/heap.h"
#include "guest/memory.h"
#include "guest/origins.h"
#include "guest/pair.h"
#include "guest/system.h"
#include "guest/tap.h"
#include "guest/threads.h"

bool rf_caper_on;

/* By the address behind the call. Written under the lock of guest/modules.c, each entry once, its pc last; read by all. */
struct site {
    uintptr_t pc;
    char *
        mark; /* where its line begins in our copy of the file: '-', '+' if the file has it, LATER if it could not be written. Atomic.
                 * NULL: the site is in no pair */
    bool asleep, quiet; /* the list has it with '~', 'o'. Only under the lock */
};

struct text {
    char *at; /* NULL: there is none */
    size_t size;
};

#define LATER '\1' /* no line of a file begins so */

static struct {
    const char *path;
    char *file; /* our copy, NULL if there is none: then nothing is looked at */
    size_t size;
    struct text idle; /* the list of what need not be looked at */
    bool failed;      /* to write, and it was said. Atomic, as the next */
    bool lost;        /* our lines are not in the file any more: those that are to be marked are appended */
    struct site *sites;
    size_t capacity, count; /* a power of two; never more than half of it */
} caper;

static size_t slot_of(uintptr_t pc)
{
    size_t at = (size_t)(pc * UINT64_C(0x9e3779b97f4a7c15) >> 24) & (caper.capacity - 1);
    for (;; at = (at + 1) & (caper.capacity - 1)) {
        uintptr_t there = __atomic_load_n(&caper.sites[at].pc, __ATOMIC_ACQUIRE);
        if (!there || there == pc)
            return at;
    }
}

static const struct site *site_of(uintptr_t pc)
{
    struct site *site = &caper.sites[slot_of(pc)];
    return __atomic_load_n(&site->pc, __ATOMIC_ACQUIRE) ? site : NULL;
}

static char *mark_of(uintptr_t pc)
{
    const struct site *site = site_of(pc);
    return site ? __atomic_load_n(&site->mark, __ATOMIC_RELAXED) : NULL;
}

/* ---- the file ---- */

static char *line_behind(char *at, const char *end)
{
    while (at < end && *at != '\n')
        at++;
    return at < end ? at + 1 : at;
}

static char *next_line(char *at)
{
    return line_behind(at, caper.file + caper.size);
}

/* A '+' and the rest of the line at the end of the file: one write, so that others' lines come before it or after it. */
static bool append_line(long fd, char *line)
{
    static const char plus = '+';
    char *next = next_line(line);
    struct iovec parts[] = { { (void *)(uintptr_t)&plus, 1 }, { line + 1, (size_t)(next - line) - 1 } };
    return RF_SYSCALL(SYS_writev, fd, parts, 2) == next - line;
}

/* At the end of a file that has lost our lines: this one, or, the first time, all that are known to have escaped as well. */
static bool write_again(char *one, bool all)
{
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, caper.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bool good = fd >= 0;
    if (good && all) {
        good = RF_SYSCALL(SYS_write, fd, "\n", 1) == 1; /* what it was cut to may end in half a line */
        for (char *line = caper.file; line < caper.file + caper.size && good; line = next_line(line)) {
            char mark = __atomic_load_n(line, __ATOMIC_RELAXED);
            if (line != one && (mark == '+' || mark == LATER))
                good = append_line(fd, line);
        }
    }
    if (good && one)
        good = append_line(fd, one);
    if (fd >= 0)
        RF_SYSCALL(SYS_close, fd);
    return good;
}

/* Does the file still have the line where it was? */
static bool has_line(long fd, const char *line, size_t length)
{
    char there[256];
    length = length < sizeof there ? length : sizeof there;
    return RF_SYSCALL(SYS_pread64, fd, there, length, line - caper.file) == (long)length &&
           (there[0] == '-' || there[0] == '+') && __builtin_memcmp(there + 1, line + 1, length - 1) == 0;
}

/* Marks a line in the file. */
static bool write_mark(char *line)
{
    bool good = false;
    if (__atomic_load_n(&caper.lost, __ATOMIC_RELAXED))
        return write_again(line, false);
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, caper.path, O_RDWR | O_CLOEXEC);
    if (fd < 0 && fd != -ENOENT)
        return false;
    bool there = fd >= 0 && has_line(fd, line, (size_t)(next_line(line) - line));
    if (there)
        good = RF_SYSCALL(SYS_pwrite64, fd, "+", 1, line - caper.file) == 1;
    if (fd >= 0)
        RF_SYSCALL(SYS_close, fd);
    return there ? good : write_again(line, !__atomic_exchange_n(&caper.lost, true, __ATOMIC_RELAXED));
}

static void escaped(uintptr_t pc)
{
    char *mark = mark_of(pc);
    if (!mark || __atomic_load_n(mark, __ATOMIC_RELAXED) != '-')
        return;
    bool good = write_mark(mark);
    __atomic_store_n(mark, good ? '+' : LATER, __ATOMIC_RELAXED);
    if (!good && !__atomic_exchange_n(&caper.failed, true, __ATOMIC_RELAXED))
        rf_say("%s: cannot be written; the sites that escape are tried again at the end", caper.path);
}

/* Was the file cut or taken away? */
static bool was_cut(void)
{
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, caper.path, O_RDONLY | O_CLOEXEC);
    long size = fd < 0 ? 0 : RF_SYSCALL(SYS_lseek, fd, 0, 2 /* SEEK_END */);
    if (fd >= 0)
        RF_SYSCALL(SYS_close, fd);
    return size < (caper.lost ? 1 : (long)caper.size);
}

void rf_caper_finish(void)
{
    bool left = caper.file && was_cut();
    rf_origins_finish(left);
    for (char *line = caper.file; line && line < caper.file + caper.size && !left; line = next_line(line))
        left = __atomic_load_n(line, __ATOMIC_RELAXED) == LATER;
    if (left && !write_again(NULL, true))
        rf_say("%s: could still not be written: sites that have escaped are not kept", caper.path);
}

/* ---- listening ---- */

static void hear_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    int fd;
    uint32_t note;
    if (!caper.file || rf_fd_location(addr, &fd, &note)) /* there is no memory where descriptors are */
        return;
    if (size && !rf_escape_filters(self, addr, size) && !rf_escape_own_stack(self, addr)) {
        escaped(pc);
        if (rf_hot.top > self->frames) /* a function of libc's own access: the site is the call of it (guest/intercept.h) */
            escaped(rf_hot.top[-1].pc);
    }
    rf_escape_stores(addr, size, flags);
}

void rf_caper_freed(struct rf_self *self, uintptr_t block, size_t size)
{
    if (!caper.file || rf_hot.top == self->frames)
        return;
    bool mine = rf_busy_enter(self);
    if (!rf_escape_filters(self, block, size))
        escaped(rf_hot.top[-1].pc);
    rf_busy_leave(self, mine);
}

uintptr_t rf_caper_settled[RF_CAPER_SETTLED];

static bool is_open(uintptr_t caller)
{
    const char *mark = caper.file ? mark_of(caller) : NULL;
    return mark && __atomic_load_n(mark, __ATOMIC_RELAXED) == '-';
}

/* Most sites have escaped, or are in no pair, and that is all there is to find out. Code may run before its module is known: so after a call
 * is called settled there is another look. Either that finds the site, or rf_caper_module() finds the entry. A thread that is not known (yet, or any more)
 * has no memory of its own. */
void rf_caper_given(uintptr_t caller, const volatile void *object)
{
    struct rf_self *self = rf_hot.self;
    if (!is_open(caller)) {
        uintptr_t *settled = &rf_caper_settled[caller % RF_CAPER_SETTLED];
        __atomic_store_n(settled, caller, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__builtin_expect(!is_open(caller), 1))
            return;
        __atomic_store_n(settled, 0, __ATOMIC_RELAXED);
    }
    if (!object || (self && self->inside))
        return;
    bool mine = self && rf_busy_enter(self);
    if (!self || (!rf_escape_filters(self, (uintptr_t)object, 1) && !rf_escape_own_stack(self, (uintptr_t)object)))
        escaped(caller);
    if (self)
        rf_busy_leave(self, mine);
}

/* Does the access need no more than this? The thread is busy. Memory that is its own makes no site escape, and a store there publishes
 * nothing; of a site that has escaped there is nothing left to learn, but what it stores is to be looked at. */
static bool is_quick(struct rf_self *self, uintptr_t addr, size_t size, bool write, uintptr_t pc)
{
    uint32_t owner = rf_escape_owner(self);
    if (!rf_escape_stored_number(self))
        return false;
    if (!rf_hot.own)
        rf_escape_keep(self, 0, 0);
    if (addr % 16 + size <= 16 && owner != RF_ESCAPED && rf_escape_state(addr) == owner)
        return true;
    const char *mark = mark_of(pc);
    if (mark && __atomic_load_n(mark, __ATOMIC_RELAXED) == '-')
        return false;
    if (write && size >= sizeof(uintptr_t))
        rf_escape_keep(self, addr, size);
    return true;
}

static __attribute__((noinline)) void hook_slowly(uintptr_t addr, uintptr_t pc, uint64_t what)
{
    struct rf_self *self = rf_hot.self;
    bool write = (what >> 48 & 0xff) == RF_WRITE + 1, done = false;
    size_t size = what >> 56;
    if (__builtin_expect(self && !self->inside && !self->in_txn && rf_escape_leaves, 1)) {
        bool mine = rf_busy_enter(self);
        done = is_quick(self, addr, size, write, pc);
        rf_busy_leave(self, mine);
    }
    if (!done)
        rf_access(addr, size, write ? RF_A_WRITE : 0, pc);
}

/* What the hooks jump to: a leaf, most of the time. An access to a private block of the thread's own, or to its stack, tells nothing more,
 * and a store there publishes nothing. Not so while the thread has stored something that was not looked at, which may have published the
 * block: then rf_hot.own is 0. */
static void hook(uintptr_t addr, uintptr_t pc, uint64_t what)
{
    if (__builtin_expect(!rf_hot.own || !rf_escape_is_own(addr, 1), 1))
        hook_slowly(addr, pc, what);
}

static void hear_sync(struct rf_self *self, enum rf_tap_who who, enum rf_op op, uint64_t key, uintptr_t pc)
{
    (void)who, (void)op, (void)key, (void)pc;
    rf_escape_flush(self);
}

static const struct rf_tap listening = { .alone = true,
                                         .access = hear_access,
                                         .sync = hear_sync,
                                         .memory = rf_tap_no_memory,
                                         .end = rf_tap_no_end,
                                         .modules = rf_tap_nothing,
                                         .hook = hook,
                                         .own_returns = true,
                                         .fork_child = rf_tap_nothing };

/* ---- modules ---- */

/* The offset, if the line is of this module; UINT64_MAX otherwise. The line ends within the file. */
static uint64_t offset_in(const char *line, const char *end, const char *id)
{
    uint64_t offset = 0;
    const char *at = line + 2;
    if (end - line < 3 || line[1] != ' ')
        return UINT64_MAX;
    while (*id && at < end && *at == *id)
        at++, id++;
    if (*id || end - at < 4 || at[0] != '+' || at[1] != '0' || at[2] != 'x')
        return UINT64_MAX;
    for (at += 3; at < end && *at != ' ' && *at != '\n'; at++) {
        char c = (char)(*at | 32);
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return UINT64_MAX;
        offset = offset << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return offset;
}

/* A module that is loaded at ever new places may fill the table: NULL. */
static struct site *made_site(uintptr_t pc)
{
    struct site *site = &caper.sites[slot_of(pc)];
    if (site->pc)
        return site;
    if (2 * (caper.count + 1) > caper.capacity)
        return NULL;
    caper.count++;
    __atomic_store_n(&site->pc, pc, __ATOMIC_RELEASE);
    return site;
}

/* A site that has no room in the table would not be seen: it counts as escaped. */
static void add_site(uintptr_t pc, char *mark)
{
    struct site *site = made_site(pc);
    if (!site)
        __atomic_store_n(mark, write_mark(mark) ? '+' : LATER, __ATOMIC_RELAXED);
    else /* whatever module was there before */
        __atomic_store_n(&site->mark, mark, __ATOMIC_RELAXED);
}

static void add_idle(uintptr_t pc, char letter)
{
    struct site *site = letter == 'a' ? NULL : made_site(pc);
    if (letter == 'a')
        rf_origins_known(pc);
    else if (site)
        *(letter == 'o' ? &site->quiet : &site->asleep) = true;
}

/* Nothing that was said of a module which was unloaded holds for the one that lies there now. Its marks stay until others take their
 * place: at no time is an escape lost, of the same module that is only told again. */
static void forget_idle(const struct rf_image *image)
{
    for (unsigned h = 0; h < image->header_count; h++) {
        const ElfW(Phdr) *header = &image->headers[h];
        for (size_t i = 0; rf_scan_is_code(header) && i < caper.capacity; i++)
            if (caper.sites[i].pc - (image->base + header->p_vaddr) < header->p_memsz)
                caper.sites[i].quiet = caper.sites[i].asleep = false;
    }
}

void rf_caper_module(const struct rf_image *image, const char *name)
{
    forget_idle(image);
    static struct rf_pair_module module; /* under the lock of guest/modules.c */
    rf_pair_module(&module, image, name);
    const char *id = module.id[0] == '/' ? module.id + 1 : module.id;
    rf_origins_module(image, id);
    for (char *line = caper.file, *next; line < caper.file + caper.size; line = next) {
        next = next_line(line);
        uint64_t offset = line[0] == '-' || line[0] == '+' ? offset_in(line, next, id) : UINT64_MAX;
        if (offset != UINT64_MAX)
            add_site(image->base + offset + 1, line);
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* rf_caper_given() */
    for (unsigned i = 0; i < RF_CAPER_SETTLED; i++)
        __atomic_store_n(&rf_caper_settled[i], 0, __ATOMIC_RELAXED);
    const char *end = caper.idle.at + caper.idle.size;
    for (char *line = caper.idle.at, *next; line && line < end; line = next) {
        next = line_behind(line, end);
        uint64_t offset = line[0] == '~' || line[0] == 'o' || line[0] == 'a' ? offset_in(line, next, id) : UINT64_MAX;
        if (offset != UINT64_MAX)
            add_idle(image->base + offset + 1, line[0]);
    }
}

bool rf_caper_needs(const struct rf_hook_call *call, const char *hook_name)
{
    struct rf_hook hook = rf_hook_named(hook_name);
    if (!rf_hook_removable(&hook))
        return true;
    if (!caper.file || hook.kind == RF_HOOK_FUNCTION)
        return false;
    const struct site *site = site_of((uintptr_t)call->at + call->length);
    if (hook.write && (hook.kind == RF_HOOK_RANGE || hook.size >= sizeof(uintptr_t)) && !(site && site->quiet))
        return true;
    /* A jump's site was marked when it was written down. */
    return !call->jump && site && site->mark && *site->mark != '+' && !site->asleep;
}

/* ---- the beginning ---- */

static const char *path_in(char **environment, const char *variable)
{
    for (; environment && *environment; environment++) {
        const char *text = *environment, *name = variable;
        while (*name && *text == *name)
            text++, name++;
        if (!*name && *text == '=')
            return text[1] ? text + 1 : NULL;
    }
    return NULL;
}

/* False: it cannot be read. */
static bool read_text(const char *path, struct text *text)
{
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    long size = RF_SYSCALL(SYS_lseek, fd, 0, 2 /* SEEK_END */);
    if (size > 0) {
        text->at = rf_pages((size_t)size);
        for (long got; text->size < (size_t)size && (got = RF_SYSCALL(SYS_pread64, fd, text->at + text->size,
                                                                      (size_t)size - text->size, text->size)) > 0;)
            text->size += (size_t)got;
    }
    RF_SYSCALL(SYS_close, fd);
    return true;
}

static size_t lines_in(const struct text *text)
{
    size_t lines = 1;
    for (size_t i = 0; i < text->size; i++)
        lines += text->at[i] == '\n';
    return lines;
}

static void begin_idle(const char *path)
{
    bool sleepers = false;
    if (!path || !read_text(path, &caper.idle))
        return;
    const char *end = caper.idle.at + caper.idle.size;
    for (char *line = caper.idle.at; line && line < end; line = line_behind(line, end)) {
        sleepers |= line[0] == '~';
        if (end - line >= 7 && __builtin_memcmp(line, "a stack", 7) == 0)
            rf_origins_known(RF_ORIGIN_STACK);
    }
    rf_origins_begin(caper.path, sleepers);
}

void rf_caper_begin(char **environment)
{
    const char *path = path_in(environment, RF_CAPER_VARIABLE);
    struct text file = { NULL, 0 };
    if (!path || rf_tap)
        return;
    caper.path = path;
    if (!read_text(path, &file))
        rf_say("%s: the sites of redflag caper cannot be read; nothing is looked at", path);
    caper.file = file.at;
    caper.size = file.size;
    if (caper.file)
        begin_idle(path_in(environment, RF_CAPER_IDLE_VARIABLE));
    size_t lines = lines_in(&file) + lines_in(&caper.idle);
    for (caper.capacity = 1024; caper.capacity < 4 * lines;)
        caper.capacity *= 2;
    caper.sites = rf_pages(caper.capacity * sizeof *caper.sites);
    rf_heap_huge_pages(); /* fewer misses for the program, beside what it does for us */
    rf_heap_spread = true;
    rf_caper_on = true;
    rf_tap = &listening;
}
