/* File descriptors.
 *
 * 1. A number has an address of its own, at which no memory is: opening and closing write it, every other use reads it. So a close
 *    that is not ordered with a use is a race like any other. It stays one until the number is opened again.
 * 2. A number refers to an object, which orders: who writes comes before who reads (io_sync=1). Pipes, socket pairs, eventfd and
 *    their like are objects of their own, shared by duplicates. Files and FIFOs with a name are known by device and inode, so that
 *    two openings of one file are one object; devices order nothing, except pseudo-terminals that the program has opened, which are
 *    one object, as are all sockets made by socket(). io_sync=2: everything is one object. io_sync=0: nothing orders.
 * 3. A number that came from elsewhere (inherited, a raw system call) is looked at when it is first used. A number that was closed
 *    before our eyes but is open all the same is such a one, too: its history is forgotten.
 * 4. No locks: the two tables are pages that are hung in by compare-and-swap and stay for ever, their cells are atomic words. A
 *    descriptor that is closed while another thread uses it is the program's race; all that can happen to us is that the user
 *    acquires what a later object of the same key knows.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "guest/access.h"
#include "guest/fd.h"
#include "guest/memory.h"
#include "guest/objects.h"
#include "guest/options.h"
#include "guest/planes.h"
#include "guest/system.h"

/* Addresses that stand for numbers and for objects: behind the planes, where no program has memory. */
#define NUMBERS (RF_PLANES_END + 0x1000000000)
#define KEYS (RF_PLANES_END + 0x2000000000)
#define STEP 8u

enum {
    KEY_UNKNOWN,
    KEY_CLOSED,
    KEY_CLOSING, /* from before its real close to after it: open or not, it is as good as closed */
    KEY_NONE,
    KEY_EVERYTHING,
    KEY_SOCKETS,
    KEY_TERMINALS,
    KEY_FILES,
    FILES = 1u << 16,
    KEY_OWN = KEY_FILES + FILES
};

/* Cells by number: 2^20 chunks of 2^12. */
#define CHUNK_BITS 12
#define CHUNK_CELLS (1u << CHUNK_BITS)
struct table {
    uint64_t **chunks;
};

static struct table numbers; /* number -> note << 32 | key */
static struct table owned;   /* key - KEY_OWN -> the next free one << 32 | how many numbers refer to it */
static uint64_t free_keys;   /* a stack: changes << 32 | the topmost + 1 */
static uint32_t next_key;

/* Hangs `fresh` at `place` unless somebody was first. */
static void *settle(void *place, void *fresh, size_t size)
{
    void *expected = NULL;
    if (__atomic_compare_exchange_n((void **)place, &expected, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    rf_pages_back(fresh, size);
    return expected;
}

static uint64_t *cell(struct table *table, uint32_t index, bool make)
{
    const size_t top = sizeof(uint64_t *) << (31 - CHUNK_BITS), chunk = sizeof(uint64_t) * CHUNK_CELLS;
    uint64_t **chunks = __atomic_load_n(&table->chunks, __ATOMIC_ACQUIRE);
    if (!chunks) {
        void *fresh = make ? rf_reserve(top) : NULL;
        if (!fresh)
            return NULL;
        chunks = settle(&table->chunks, fresh, top);
    }
    uint64_t **place = &chunks[index >> CHUNK_BITS], *cells = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!cells) {
        if (!make)
            return NULL;
        cells = settle(place, rf_pages(chunk), chunk);
    }
    return &cells[index & (CHUNK_CELLS - 1)];
}

static uintptr_t address_of_key(uint32_t key)
{
    return KEYS + (uintptr_t)key * STEP;
}

static uint32_t key_new(void)
{
    uint64_t head = __atomic_load_n(&free_keys, __ATOMIC_ACQUIRE);
    while ((uint32_t)head) {
        uint32_t index = (uint32_t)head - 1;
        uint64_t *state = cell(&owned, index, false), next = __atomic_load_n(state, __ATOMIC_RELAXED) >> 32;
        /* The count of changes tells if another thread has taken it and put it back since. */
        if (__atomic_compare_exchange_n(&free_keys, &head, ((head >> 32) + 1) << 32 | next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            __atomic_store_n(state, 1, __ATOMIC_RELEASE);
            return KEY_OWN + index;
        }
    }
    uint32_t index = __atomic_fetch_add(&next_key, 1, __ATOMIC_RELAXED);
    uint64_t *state = index < (1u << 31) - KEY_OWN ? cell(&owned, index, true) : NULL;
    if (!state)
        return KEY_NONE;
    __atomic_store_n(state, 1, __ATOMIC_RELEASE);
    return KEY_OWN + index;
}

/* One more number refers to it. KEY_NONE if the last one has gone in between. */
static uint32_t key_keep(uint32_t key)
{
    if (key < KEY_OWN)
        return key;
    uint64_t *state = cell(&owned, key - KEY_OWN, false), value = __atomic_load_n(state, __ATOMIC_RELAXED);
    while ((uint32_t)value)
        if (__atomic_compare_exchange_n(state, &value, value + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return key;
    return KEY_NONE;
}

static void key_drop(uint32_t key)
{
    if (key < KEY_OWN)
        return;
    uint64_t *state = cell(&owned, key - KEY_OWN, false), value = __atomic_load_n(state, __ATOMIC_RELAXED);
    do {
        if (!(uint32_t)value)
            return;
    } while (!__atomic_compare_exchange_n(state, &value, value - 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    if ((uint32_t)value != 1)
        return;
    rf_objects_forget(address_of_key(key), STEP);
    uint64_t head = __atomic_load_n(&free_keys, __ATOMIC_ACQUIRE);
    do
        __atomic_store_n(state, (head & UINT32_MAX) << 32, __ATOMIC_RELEASE);
    while (!__atomic_compare_exchange_n(&free_keys, &head, ((head >> 32) + 1) << 32 | (key - KEY_OWN + 1), false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
}

/* Invariant 2, as the kernel tells it. */
static uint32_t key_by_kernel(int fd, bool opened_here)
{
    struct stat st;
    if (RF_SYSCALL(SYS_fstat, fd, &st) < 0)
        return KEY_NONE;
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFIFO: {
        uint64_t hash = ((uint64_t)st.st_dev << 40 ^ (uint64_t)st.st_ino) * UINT64_C(0x9e3779b97f4a7c15);
        return KEY_FILES + (uint32_t)(hash >> 48) % FILES;
    }
    case S_IFSOCK:
        return KEY_SOCKETS;
    case S_IFCHR: {
        unsigned device = major(st.st_rdev);
        return opened_here && ((device == 5 && minor(st.st_rdev) == 2) || (device >= 136 && device < 144)) ? KEY_TERMINALS : KEY_NONE;
    }
    case 0: /* eventfd and the like have no type */
        return key_new();
    default:
        return KEY_NONE;
    }
}

static inline uintptr_t address_of_number(int fd)
{
    return NUMBERS + (uintptr_t)(uint32_t)fd * STEP;
}

/* Between threads a number's cell changes as the program's own calls do; see invariant 4. */
static void become(const struct rf_scope *scope, int fd, uint32_t key)
{
    uint64_t *place = cell(&numbers, (uint32_t)fd, true);
    if (!place) {
        key_drop(key);
        return;
    }
    uint64_t note = rf_note_here(scope->pc, RF_A_WRITE, 0);
    key_drop((uint32_t)__atomic_exchange_n(place, note << 32 | key, __ATOMIC_ACQ_REL));
    rf_range_clear(address_of_number(fd), STEP);
}

void rf_fd_opened(const struct rf_scope *scope, int fd, enum rf_fd_kind kind)
{
    if (fd < 0)
        return;
    become(scope, fd, kind == RF_FD_FILE ? key_by_kernel(fd, true) : kind == RF_FD_SOCKET ? KEY_SOCKETS : key_new());
    rf_access(address_of_number(fd), STEP, RF_A_WRITE, scope->pc);
}

void rf_fd_opened_pair(const struct rf_scope *scope, const int fds[2])
{
    uint32_t key = key_new();
    become(scope, fds[0], key);
    become(scope, fds[1], key_keep(key));
    rf_access(address_of_number(fds[0]), STEP, RF_A_WRITE, scope->pc);
    rf_access(address_of_number(fds[1]), STEP, RF_A_WRITE, scope->pc);
}

/* Invariant 3. Returns its key. */
static uint32_t known(int fd)
{
    uint64_t *place = cell(&numbers, (uint32_t)fd, true);
    if (!place)
        return KEY_NONE;
    uint32_t key = (uint32_t)__atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (__builtin_expect(key >= KEY_CLOSING, 1))
        return key;
    if (RF_SYSCALL(SYS_fcntl, fd, F_GETFD) < 0)
        return key; /* closed it is: the use is looked at, and orders nothing */
    if (key == KEY_CLOSED)
        rf_range_clear(address_of_number(fd), STEP);
    uint32_t fresh = key_by_kernel(fd, false);
    uint64_t expected = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if ((uint32_t)expected <= KEY_CLOSED && __atomic_compare_exchange_n(place, &expected, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    key_drop(fresh);
    return (uint32_t)expected;
}

static uintptr_t order_of(uint32_t key)
{
    if (rf_options.io_sync == 2)
        return address_of_key(KEY_EVERYTHING);
    return rf_options.io_sync && key > KEY_NONE ? address_of_key(key) : 0;
}

void rf_fd_copied(const struct rf_scope *scope, int from, int to)
{
    if (from < 0 || to < 0 || from == to)
        return;
    bool replaces = known(to) > KEY_CLOSING; /* others may go on using it: rf_fd_replaced() */
    become(scope, to, key_keep(known(from)));
    rf_access(address_of_number(from), STEP, 0, scope->pc);
    rf_access(address_of_number(to), STEP, replaces ? 0 : RF_A_WRITE, scope->pc);
}

void rf_fd_replaced(const struct rf_scope *scope, int fd)
{
    uint64_t *place = fd >= 0 ? cell(&numbers, (uint32_t)fd, false) : NULL;
    /* Programs replace a descriptor just so that others may go on using it: no write. */
    if (place && (uint32_t)__atomic_load_n(place, __ATOMIC_RELAXED) > KEY_CLOSING)
        rf_access(address_of_number(fd), STEP, 0, scope->pc);
}

bool rf_fd_closing(const struct rf_scope *scope, int fd)
{
    uint32_t key = fd >= 0 ? known(fd) : KEY_UNKNOWN;
    if (key == KEY_UNKNOWN)
        return false;
    rf_access(address_of_number(fd), STEP, RF_A_WRITE, scope->pc);
    if (key <= KEY_CLOSING) /* closed twice: looked at */
        return false;
    if (order_of(key))
        rf_release(order_of(key), RF_O_FD); /* who finds its other end closed comes after */
    uint64_t *place = cell(&numbers, (uint32_t)fd, true), value = place ? __atomic_load_n(place, __ATOMIC_ACQUIRE) : 0;
    if ((uint32_t)value != key ||
        !__atomic_compare_exchange_n(place, &value, (value >> 32) << 32 | KEY_CLOSING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    key_drop(key);
    return true;
}

/* If nobody has opened it again. */
void rf_fd_closed(int fd)
{
    uint64_t *place = cell(&numbers, (uint32_t)fd, true), value = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if ((uint32_t)value == KEY_CLOSING)
        __atomic_compare_exchange_n(place, &value, value - KEY_CLOSING + KEY_CLOSED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void rf_fd_closing_range(const struct rf_scope *scope, unsigned first, unsigned last)
{
    for (uint64_t fd = first; fd <= last && fd <= INT32_MAX;) {
        uint64_t *place = cell(&numbers, (uint32_t)fd, false);
        if (!place) { /* a chunk that nobody has used */
            fd = (fd | (CHUNK_CELLS - 1)) + 1;
            continue;
        }
        if ((uint32_t)__atomic_load_n(place, __ATOMIC_RELAXED) > KEY_CLOSING && rf_fd_closing(scope, (int)fd))
            rf_fd_closed((int)fd);
        fd++;
    }
}

void rf_fd_used(const struct rf_scope *scope, int fd)
{
    if (fd < 0)
        return;
    uint32_t key = known(fd);
    if (key != KEY_UNKNOWN)
        rf_access(address_of_number(fd), STEP, 0, scope->pc);
}

void rf_fd_acquires(int fd)
{
    uintptr_t order = fd >= 0 ? order_of(known(fd)) : 0;
    if (order)
        rf_acquire(order, RF_O_FD);
}

void rf_fd_releases(int fd)
{
    uintptr_t order = fd >= 0 ? order_of(known(fd)) : 0;
    if (order)
        rf_release(order, RF_O_FD);
}

bool rf_fd_location(uintptr_t addr, int *fd, uint32_t *note)
{
    if (addr < NUMBERS || addr - NUMBERS > (uintptr_t)INT32_MAX * STEP)
        return false;
    *fd = (int)((addr - NUMBERS) / STEP);
    uint64_t *place = cell(&numbers, (uint32_t)*fd, false);
    *note = place ? (uint32_t)(__atomic_load_n(place, __ATOMIC_RELAXED) >> 32) : 0;
    return true;
}
