/* See guest/pair.h: for detectors of the runtime that look at one pair of sites (LiteHB, FullHB).
 *
 * 1. Calls of hooks at other sites are taken out of the code, and those at functions' entries and exits: the stack of an access is its
 *    place alone. Those of the pair stay as they are, and come through the PLT.
 * 2. The table of places is written under the lock of guest/modules.c, before the module runs; entries are never taken back, and
 *    appear whole.
 */
#include "guest/modules.h"
#include "guest/options.h"
#include "guest/pair.h"
#include "guest/patch.h"
#include "guest/system.h"
#include "sites/hook.h"

#define PLACES 4096u /* an open hash table; `redflag chase` names 1000 calls at most */
static uint64_t places[PLACES]; /* pc << 2 | role; 0: free */

static unsigned place_of(uintptr_t pc)
{
    return (unsigned)((pc * 0x9e3779b97f4a7c15u) >> 40) % PLACES;
}

static void add_place(uintptr_t pc, unsigned role)
{
    unsigned i = place_of(pc);
    for (unsigned tries = 0; places[i] && places[i] >> 2 != pc; i = (i + 1) % PLACES)
        if (++tries == PLACES / 2)
            return;
    __atomic_store_n(&places[i], (uint64_t)pc << 2 | role, __ATOMIC_RELEASE);
}

unsigned rf_pair_class(uintptr_t pc)
{
    uint64_t place;
    for (unsigned i = place_of(pc); (place = __atomic_load_n(&places[i], __ATOMIC_ACQUIRE)); i = (i + 1) % PLACES)
        if (place >> 2 == pc)
            return place & 3;
    return 0;
}

#define MOST_HOOKS 512u

static struct {
    struct rf_scan scan; /* a hook's number is its place in `hooks` */
    struct rf_hook hooks[MOST_HOOKS];
    uint32_t hook_count;
    struct rf_pair_module module;
    unsigned removed, kept;
} reading;

static uint32_t hook_wanted(void *unused, const char *name, const uintptr_t *slot)
{
    (void)unused;
    struct rf_hook hook = rf_hook_named(name);
    if ((!rf_hook_accesses(&hook) && !rf_hook_removable(&hook)) || reading.hook_count == MOST_HOOKS ||
        !rf_module_leads_here(&reading.scan.image, *slot, name))
        return RF_NO_HOOK;
    reading.hooks[reading.hook_count] = hook;
    return reading.hook_count++;
}

static void call_found(void *unused, const struct rf_hook_call *call)
{
    (void)unused;
    const struct rf_hook *hook = &reading.hooks[call->hook];
    unsigned role = rf_pair_role(&reading.module, &reading.scan.image, call);
    if (role && rf_hook_accesses(hook)) {
        add_place((uintptr_t)call->at + call->length, role);
        reading.kept++;
    } else if (rf_hook_removable(hook) && rf_options.patch_calls) {
        uint8_t form[6];
        rf_patch_nothing(call->length, call->jump, form);
        rf_patch_add(call->at, form, call->length);
        reading.removed++;
    }
}

bool rf_pair_change(const struct rf_image *image, const char *name)
{
    reading.scan.image = *image;
    reading.scan.hook = hook_wanted;
    reading.hook_count = reading.removed = reading.kept = 0;
    if (!rf_scan_slots(&reading.scan))
        return true;
    rf_pair_module(&reading.module, image, name);
    rf_scan_stubs(&reading.scan);
    rf_scan_calls(&reading.scan, call_found);
    bool done = rf_patch_write();
    if (rf_options.verbosity)
        rf_say("module %s: %u calls of hooks are taken out, %u are of the pair%s", reading.module.id, reading.removed, reading.kept,
               done ? "" : "; some could not be changed");
    return done;
}
