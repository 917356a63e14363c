/* Calls of hot hooks, made to reach copies of them nearby.
 *
 * A call through the PLT costs a second, indirect jump, and hooks that serve all modules must load what could be constants. So the
 * templates of guest/hooks.S are copied to within 2 GB of each module that calls hooks, and its calls are changed to reach them.
 *
 * 1. What is changed is what sites/scan.h finds, and only where the hook's slot is bound, or would be, to ours. What is not changed
 *    still works: it calls the hook through the PLT. So every doubt ends in leaving things as they are.
 * 2. No page is ever writable and executable: guest/patch.h.
 * 3. To look at a module again does no harm: calls that were changed do not lead to the PLT any more. So modules are forgotten
 *    whenever one was unloaded, since another may take its place; but not those that could not be changed.
 * 4. Code is changed only while nobody runs it. At the start there is one thread, and it is here. Later each instrumented module calls
 *    __tsan_init from its first constructor, which comes here before the module has run anything but resolvers, on this thread, and
 *    while the loader keeps other threads from loading; so whatever is new and calls hooks has not begun to run. Other threads get to
 *    it only after its constructors or through them, and cannot have fetched the old bytes: a page that is written gets a new place
 *    in memory, for which the kernel first interrupts all cores that know the old one.
 */
#include "guest/near.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>

#include "guest/hot.h"
#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/options.h"
#include "guest/patch.h"
#include "guest/system.h"
#include "guest/tap.h"
#include "sites/scan.h"

/* guest/hooks.S */
extern const char rf_near_begin[], rf_near_end[], rf_near_names[];
void rf_slow_access(void);
#define RF_PUT_TLS 0x7a5a0000u
#define RF_PUT_SLOW 0x7a5a7a5a7a5a0001u

#define PAGE ((uintptr_t)4096)

struct module {
    struct rf_image image;
    bool left; /* as it was, though it calls hooks */
};

struct block {
    uintptr_t at;
    struct block *next;
};

/* All of this is written and read by who holds the lock: the process number of the holder, so that the child of a fork that came at a
 * bad time sees that nobody holds it. */
static uint32_t lock;
static struct block *blocks;
static struct rf_scan scan; /* a hook's number is the offset of its template */
static struct module *known; /* those that were looked at */
static struct rf_image ours; /* this library */
static unsigned known_count, known_room;
static unsigned long long seen_unloads;
/* How many modules had ever been loaded when all were looked at. Read without the lock too: a stale value costs another look. */
static unsigned long long seen_loads;

static bool same_text(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static uint32_t hook_named(const char *name)
{
    for (const char *at = rf_near_names;;) {
        uint32_t offset;
        __builtin_memcpy(&offset, at, sizeof offset);
        at += sizeof offset;
        if (offset == RF_NO_HOOK || same_text(at, name))
            return offset;
        while (*at++)
            ;
    }
}

/* Whether a slot with this content leads to our hook of that name. A slot that was not bound yet leads back into its module; then the
 * program and what it was loaded with decide: they come first for every module. */
bool rf_near_leads_here(const struct rf_image *image, uintptr_t content, const char *name)
{
    return rf_image_has(&ours, rf_image_has(image, content, 1) ? (uintptr_t)dlsym(RTLD_DEFAULT, name) : content, 1);
}

static uint32_t wanted(void *unused, const char *name, const uintptr_t *slot)
{
    (void)unused;
    uint32_t hook = hook_named(name);
    return hook != RF_NO_HOOK && rf_near_leads_here(&scan.image, *slot, name) ? hook : RF_NO_HOOK;
}

/* -- the copies ----------------------------------------------------------------------------------------------------------------- */

static size_t block_size(void)
{
    return ((size_t)(rf_near_end - rf_near_begin) + PAGE - 1) & ~(PAGE - 1);
}

/* Puts the constants of this process into a copy of the templates. */
static void fill_block(uint8_t *to, void *unused)
{
    (void)unused;
    size_t size = (size_t)(rf_near_end - rf_near_begin);
    __builtin_memcpy(to, rf_near_begin, size);
    uint32_t offset = (uint32_t)((uintptr_t)&rf_hot - (uintptr_t)__builtin_thread_pointer());
    for (size_t i = 0; i + 4 <= size; i++) {
        uint64_t word = 0;
        __builtin_memcpy(&word, to + i, i + 8 <= size ? 8 : 4);
        if (word == RF_PUT_SLOW) {
            word = (uintptr_t)&rf_slow_access;
            __builtin_memcpy(to + i, &word, 8);
            i += 7;
        } else if ((uint32_t)word - RF_PUT_TLS < sizeof(struct rf_hot)) {
            uint32_t half = (uint32_t)word - RF_PUT_TLS + offset;
            __builtin_memcpy(to + i, &half, 4);
            i += 3;
        }
    }
    if (rf_tap)
        rf_tap_hooks(to);
}

/* Copies that all code from low to high can call. */
static struct block *block_near(uintptr_t low, uintptr_t high)
{
    for (struct block *block = blocks; block; block = block->next)
        if (rf_patch_reaches(block->at, block_size(), low, high))
            return block;
    uintptr_t at = rf_patch_make(low, high, block_size(), fill_block, NULL);
    if (!at)
        return NULL;
    struct block *block = rf_take(sizeof *block);
    *block = (struct block){ at, blocks };
    return blocks = block;
}

/* -- changing code -------------------------------------------------------------------------------------------------------------- */

static struct {
    const struct block *block;
    unsigned calls;
} change;

static void change_call(void *unused, const struct rf_hook_call *call)
{
    (void)unused;
    uint8_t form[6];
    rf_patch_form(call->at, call->length, call->jump, change.block->at + call->hook, form);
    rf_patch_add(call->at, form, call->length);
    change.calls++;
}

/* False if the module was left as it is, or some of it. */
static bool change_module(const struct rf_image *image)
{
    scan.image = *image;
    scan.hook = wanted;
    if (!rf_scan_slots(&scan))
        return true;
    rf_scan_stubs(&scan);
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (unsigned i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t begin = image->base + header->p_vaddr, end = begin + header->p_filesz;
        if (!rf_scan_is_code(header))
            continue;
        low = begin < low ? begin : low;
        high = end > high ? end : high;
    }
    change.block = low < high ? block_near(low, high) : NULL;
    change.calls = 0;
    if (!change.block)
        return false;
    rf_scan_calls(&scan, change_call);
    bool done = rf_patch_write();
    if (rf_options.verbosity)
        rf_say("%u calls of hooks in the module at 0x%zx reach copies at 0x%zx%s", change.calls, (size_t)image->base,
               (size_t)change.block->at, done ? "" : ", except some that could not be changed");
    return done;
}

/* -- modules -------------------------------------------------------------------------------------------------------------------- */

static bool is_known(uintptr_t address)
{
    for (unsigned i = 0; i < known_count; i++)
        if (rf_image_has(&known[i].image, address, 1))
            return true;
    return false;
}

static void remember(const struct rf_image *image)
{
    if (known_count == known_room) {
        unsigned room = known_room ? 2 * known_room : 32;
        struct module *longer = rf_take(room * sizeof *longer);
        for (unsigned i = 0; i < known_count; i++)
            longer[i] = known[i];
        if (known_room)
            rf_give(known, known_room * sizeof *known);
        known = longer;
        known_room = room;
    }
    known[known_count++] = (struct module){ .image = *image };
}

static void forget(void)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < known_count; i++)
        if (known[i].left)
            known[kept++] = known[i];
    known_count = kept;
}

/* Remembers the modules that are new, from *first on. */
static int gather(struct dl_phdr_info *info, size_t size, void *first)
{
    (void)size;
    if (info->dlpi_subs != seen_unloads) {
        forget();
        *(unsigned *)first = known_count;
        seen_unloads = info->dlpi_subs;
    }
    __atomic_store_n(&seen_loads, info->dlpi_adds, __ATOMIC_RELAXED);
    struct rf_image image = { info->dlpi_addr, UINTPTR_MAX, 0, info->dlpi_phdr, info->dlpi_phnum };
    for (unsigned i = 0; i < image.header_count; i++) {
        const ElfW(Phdr) *header = &image.headers[i];
        if (header->p_type != PT_LOAD)
            continue;
        uintptr_t begin = image.base + header->p_vaddr, end = begin + header->p_memsz;
        image.low = begin < image.low ? begin : image.low;
        image.high = end > image.high ? end : image.high;
    }
    if (image.high <= image.low)
        return 0;
    if (rf_image_has(&image, (uintptr_t)rf_near_begin, 1))
        ours = image;
    if (!is_known(image.low))
        remember(&image);
    return 0;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

static int each_module(int (*visit)(struct dl_phdr_info *, size_t, void *), void *argument)
{
    static int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    if (!iterate)
        *(void **)&iterate = rf_find_real("dl_iterate_phdr");
    return iterate(visit, argument);
}

/* The loader's lock, under which it shows its list, is not held for long. It is safe to use what it showed afterwards: either there is
 * no other thread that could unload it, or we are in a constructor, which keeps others from loading and unloading. */
static void look(void)
{
    uint32_t here = (uint32_t)RF_SYSCALL(SYS_getpid, 0);
    for (uint32_t holder = 0; !__atomic_compare_exchange_n(&lock, &holder, here, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);)
        if (holder == here) {
            rf_yield();
            holder = 0;
        }
    unsigned first = known_count;
    each_module(gather, &first);
    for (; first < known_count; first++)
        known[first].left = !change_module(&known[first].image);
    rf_patch_end();
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

void rf_module_loaded(void)
{
    if (rf_tap)
        rf_tap->modules();
    if (rf_options.patch_calls && __libc_single_threaded)
        look();
}

void rf_module_begins(void)
{
    unsigned long long loads;
    if (!rf_options.patch_calls)
        return;
    each_module(count_loads, &loads);
    if (loads != __atomic_load_n(&seen_loads, __ATOMIC_RELAXED))
        look();
}
