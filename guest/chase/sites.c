/* Which calls of hooks stay: those of the two sites (guest/pair.h) reach code made for each of them, all others are taken out.
 *
 * 1. A call that cannot be changed still works: it comes through the PLT to the hook, which does nothing, or finds by its return
 *    address that it is one of the sites (rf_chase_plt).
 * 2. Everything here runs under the lock of guest/modules.c, while nobody runs the code that is changed.
 */
#include <dlfcn.h>
#include <sys/single_threaded.h>

#include "guest/chase/chase.h"
#include "guest/modules.h"
#include "guest/options.h"
#include "guest/pair.h"
#include "guest/patch.h"
#include "guest/system.h"

struct rf_chase_site rf_chase_sites[RF_CHASE_SITES];
uint32_t rf_chase_unpatched;
static uint32_t site_count; /* read without a lock by rf_chase_plt(): entries come before the count */
static struct rf_chase_found found_counts;

/* -- the code of a site ---------------------------------------------------------------------------------------------------------- */

#define CODE 128u /* bytes for each */

struct code {
    uint8_t *at;
};

static void put(struct code *code, const void *bytes, size_t length)
{
    __builtin_memcpy(code->at, bytes, length);
    code->at += length;
}

#define PUT(code, ...) put((code), (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put64(struct code *code, uint64_t value)
{
    put(code, &value, 8);
}

static void put32(struct code *code, uint32_t value)
{
    put(code, &value, 4);
}

/* A short jump, whose distance is filled in later. */
static uint8_t *put_jump(struct code *code, uint8_t opcode)
{
    PUT(code, opcode, 0);
    return code->at - 1;
}

static void land(const struct code *code, uint8_t *jump)
{
    *jump = (uint8_t)(code->at - (jump + 1));
}

/* Only registers that a hook may change and that are no arguments of an atomic one: rax, r10, r11. */
static void make_code(uint8_t *to, uint32_t number, uintptr_t hook)
{
    const struct rf_chase_site *site = &rf_chase_sites[number];
    bool atomic = site->hook.kind == RF_HOOK_ATOMIC;
    uint32_t skip = (uint32_t)((uintptr_t)&rf_chase_self.skip - (uintptr_t)__builtin_thread_pointer());
    struct code code = { to };
    uint8_t *slow[2] = { NULL, NULL };
    if (site->roles & RF_PAIR_SECOND) {
        PUT(&code, 0x49, 0xbb); /* movabs $rf_chase_waiting, %r11 */
        put64(&code, (uintptr_t)&rf_chase_waiting);
        PUT(&code, 0x41, 0x83, 0x3b, 0x00); /* cmpl $0, (%r11) */
        slow[0] = put_jump(&code, 0x75);    /* jne slow */
    }
    if (site->roles & RF_PAIR_FIRST) {
        PUT(&code, 0x64, 0x83, 0x3c, 0x25); /* cmpl $0, %fs:skip */
        put32(&code, skip);
        PUT(&code, 0x00);
        slow[1] = put_jump(&code, 0x74);    /* je slow */
        PUT(&code, 0x64, 0xff, 0x0c, 0x25); /* decl %fs:skip */
        put32(&code, skip);
    }
    if (atomic) {
        PUT(&code, 0x49, 0xbb); /* movabs $hook, %r11 */
        put64(&code, hook);
        PUT(&code, 0x41, 0xff, 0xe3); /* jmp *%r11 */
    } else {
        PUT(&code, 0xc3); /* ret */
    }
    for (unsigned i = 0; i < 2; i++)
        if (slow[i])
            land(&code, slow[i]);
    if (atomic) {
        PUT(&code, 0x49, 0xbb);
        put64(&code, hook);
        PUT(&code, 0x41, 0xba); /* mov $number, %r10d */
    } else {
        PUT(&code, 0xba); /* mov $number, %edx */
    }
    put32(&code, number);
    PUT(&code, 0x48, 0xb8); /* movabs $function, %rax */
    put64(&code, atomic ? (uintptr_t)&rf_chase_atomic : (uintptr_t)&rf_chase_at);
    PUT(&code, 0xff, 0xe0); /* jmp *%rax */
}

/* A module that is looked at once more has its sites already. */
static bool site_known(uintptr_t pc)
{
    for (uint32_t i = 0; i < site_count; i++)
        if (rf_chase_sites[i].pc == pc)
            return true;
    return false;
}

/* -- a module -------------------------------------------------------------------------------------------------------------------- */

#define MOST_HOOKS 512u

static struct {
    struct rf_scan scan; /* a hook's number is its place in `hooks` */
    struct {
        struct rf_hook hook;
        uintptr_t address;
    } hooks[MOST_HOOKS];
    uint32_t hook_count;
    struct rf_pair_module module;
    uint32_t removed;
    uint32_t first_site;                          /* of those of this module */
    struct rf_hook_call needed[RF_CHASE_SITES];   /* the calls of the sites from first_site on */
} reading;

static uint32_t hook_wanted(void *unused, const char *name, const uintptr_t *slot)
{
    (void)unused;
    struct rf_hook hook = rf_hook_named(name);
    if ((!rf_hook_accesses(&hook) && !rf_hook_removable(&hook)) || reading.hook_count == MOST_HOOKS ||
        !rf_module_leads_here(&reading.scan.image, *slot, name))
        return RF_NO_HOOK;
    reading.hooks[reading.hook_count].hook = hook;
    reading.hooks[reading.hook_count].address = (uintptr_t)dlsym(RTLD_DEFAULT, name);
    return reading.hook_count++;
}

static void call_found(void *unused, const struct rf_hook_call *call)
{
    (void)unused;
    const struct rf_hook *hook = &reading.hooks[call->hook].hook;
    uint8_t roles = (uint8_t)rf_pair_role(&reading.module, &reading.scan.image, call);
    if (roles && site_known((uintptr_t)call->at + call->length))
        return;
    if (roles && rf_hook_accesses(hook) && site_count < RF_CHASE_SITES) {
        reading.needed[site_count - reading.first_site] = *call;
        rf_chase_sites[site_count] = (struct rf_chase_site){
            .pc = (uintptr_t)call->at + call->length, .roles = roles, .jump = call->jump, .hook = *hook
        };
        __atomic_store_n(&site_count, site_count + 1, __ATOMIC_RELEASE);
        found_counts.first += roles & RF_PAIR_FIRST;
        found_counts.second += (roles & RF_PAIR_SECOND) / RF_PAIR_SECOND;
        return;
    }
    if (!rf_hook_removable(hook) || !rf_options.patch_calls)
        return;
    uint8_t form[6];
    rf_patch_nothing(call->length, call->jump, form);
    rf_patch_add(call->at, form, call->length);
    reading.removed++;
}

static void fill(uint8_t *to, void *unused)
{
    (void)unused;
    for (uint32_t i = reading.first_site; i < site_count; i++, to += CODE)
        make_code(to, i, reading.hooks[reading.needed[i - reading.first_site].hook].address);
}

/* The calls of the sites reach their code. */
static bool change_sites(const struct rf_image *image)
{
    uint32_t count = site_count - reading.first_site;
    uintptr_t code = count && rf_options.patch_calls
                         ? rf_patch_make(image->low, image->high, ((size_t)count * CODE + 4095) & ~(size_t)4095, fill, NULL)
                         : 0;
    for (uint32_t i = 0; i < count && code; i++) {
        const struct rf_hook_call *call = &reading.needed[i];
        uint8_t form[6];
        rf_patch_form(call->at, call->length, call->jump, code + (size_t)i * CODE, form);
        rf_patch_add(call->at, form, call->length);
    }
    bool done = (!count || code) && rf_patch_write();
    if (!done)
        rf_chase_unpatched += count; /* more than there are is no harm */
    return done;
}

bool rf_module_change(const struct rf_image *image, const char *name)
{
    reading.scan.image = *image;
    reading.scan.hook = hook_wanted;
    reading.hook_count = 0;
    if (!rf_scan_slots(&reading.scan))
        return true;
    rf_pair_module(&reading.module, image, name);
    reading.first_site = site_count;
    reading.removed = 0;
    rf_scan_stubs(&reading.scan);
    rf_scan_calls(&reading.scan, call_found);
    bool done = rf_patch_write();
    found_counts.removed += reading.removed;
    done = change_sites(image) && done;
    if (rf_options.verbosity)
        rf_say("chase: module %s at 0x%zx: %u calls of hooks are taken out, %u stay%s", reading.module.id, (size_t)image->base, reading.removed,
               site_count - reading.first_site, done ? "" : ", some could not be changed");
    return done;
}

/* A call of a tail jump cannot be known by its return address. */
void rf_chase_plt(uintptr_t addr, uintptr_t second, uintptr_t pc)
{
    uint32_t count = __atomic_load_n(&site_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        if (rf_chase_sites[i].pc == pc && !rf_chase_sites[i].jump) {
            rf_chase_at(addr, second, i);
            return;
        }
    }
}

struct rf_chase_found rf_chase_found(void)
{
    return found_counts;
}

void rf_chase_wanted(const char *first, const char *second)
{
    rf_pair_set(first, second);
    if (__libc_single_threaded)
        rf_modules_look();
}

void rf_chase_modules(void)
{
    if (rf_modules_are_new())
        rf_modules_look();
}
