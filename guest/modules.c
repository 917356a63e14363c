/* See guest/modules.h. */
#include "guest/modules.h"

#include <dlfcn.h>
#include <sys/syscall.h>

#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/patch.h"
#include "guest/system.h"

struct module {
    struct rf_image image;
    const char *name; /* the loader's */
    bool left;        /* as it was, though it calls hooks */
};

/* All of this is written and read by who holds the lock: the process number of the holder, so that the child of a fork that came at a
 * bad time sees that nobody holds it. */
static uint32_t lock;
static struct module *known; /* those that were looked at */
static struct rf_image ours; /* this library */
static unsigned known_count, known_room;
static unsigned long long seen_unloads;
/* How many modules had ever been loaded when all were looked at. Read without the lock too: a stale value costs another look. */
static unsigned long long seen_loads;

bool rf_module_leads_here(const struct rf_image *image, uintptr_t content, const char *name)
{
    return rf_image_has(&ours, rf_image_has(image, content, 1) ? (uintptr_t)dlsym(RTLD_DEFAULT, name) : content, 1);
}

static bool is_known(uintptr_t address)
{
    for (unsigned i = 0; i < known_count; i++)
        if (rf_image_has(&known[i].image, address, 1))
            return true;
    return false;
}

static void remember(const struct rf_image *image, const char *name)
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
    known[known_count++] = (struct module){ .image = *image, .name = name };
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
    if (rf_image_has(&image, (uintptr_t)&rf_modules_look, 1))
        ours = image;
    if (!is_known(image.low))
        remember(&image, info->dlpi_name);
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

static void take(void)
{
    uint32_t here = (uint32_t)RF_SYSCALL(SYS_getpid, 0);
    for (uint32_t holder = 0; !__atomic_compare_exchange_n(&lock, &holder, here, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);)
        if (holder == here) {
            rf_yield();
            holder = 0;
        }
}

static void give(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* The loader's lock, under which it shows its list, is not held for long. It is safe to use what it showed afterwards: either there is
 * no other thread that could unload it, or we are in a constructor, which keeps others from loading and unloading. */
void rf_modules_look(void)
{
    take();
    unsigned first = known_count;
    each_module(gather, &first);
    for (; first < known_count; first++)
        known[first].left = !rf_module_change(&known[first].image, known[first].name);
    rf_patch_end();
    give();
}

bool rf_modules_has(uintptr_t address, struct rf_image *image, const char **name)
{
    bool found = false;
    take();
    for (unsigned i = 0; i < known_count && !found; i++)
        if ((found = rf_image_has(&known[i].image, address, 1))) {
            *image = known[i].image;
            *name = known[i].name;
        }
    give();
    return found;
}

bool rf_modules_are_new(void)
{
    unsigned long long loads;
    each_module(count_loads, &loads);
    return loads != __atomic_load_n(&seen_loads, __ATOMIC_RELAXED);
}
