/* Calls of hot hooks, made to reach copies of them nearby.
 *
 * A call through the PLT costs a second, indirect jump, and hooks that serve all modules must load what could be constants. So the
 * templates of guest/hooks.S are copied to within 2 GB of each module that calls hooks, and its calls are changed to reach them.
 *
 * 1. What is changed is what sites/scan.h finds, and only where the hook's slot is bound, or would be, to ours. What is not changed
 *    still works: it calls the hook through the PLT. So every doubt ends in leaving things as they are.
 * 2. No page is ever writable and executable: guest/patch.h.
 * 3. Reads that a write of the same bytes follows at once lose their calls (sites/covered.h), where only races are looked for: what is recorded
 *    or refused, and what goes by sites or samples, is every access.
 */
#include "guest/near.h"

#include <link.h>
#include <sys/single_threaded.h>

#include "guest/access.h"
#include "guest/caper.h"
#include "guest/hot.h"
#include "guest/memory.h"
#include "guest/modules.h"
#include "guest/options.h"
#include "guest/pacer.h"
#include "guest/pair.h"
#include "guest/patch.h"
#include "guest/policy.h"
#include "guest/quiet.h"
#include "guest/refusal.h"
#include "guest/system.h"
#include "guest/tap.h"
#include "guest/text.h"
#include "guest/unchecked.h"
#include "sites/covered.h"

/* guest/hooks.S */
extern const char rf_near_begin[], rf_near_end[], rf_near_names[], rf_near_gates[];
void rf_cold_access(void);
#define RF_PUT_TLS 0x7a5a0000u
#define RF_PUT_SLOW 0x7a5a7a5a7a5a0001u
#define RF_PUT_GATE 0x7a5a7a5a7a5a0002u
#define RF_PUT_READ_RANGE 0x7a5a7a5a7a5a0003u
#define RF_PUT_WRITE_RANGE 0x7a5a7a5a7a5a0004u
#define RF_PUT_COLD 0x7a5a7a5a7a5a0005u
#define RF_PUT_YIELD 0x7a5a7a5a7a5a0006u
#define RF_PUT_WAYS 0x100u
#define RF_PUT_HOOK 0x7a5a0100u
/* guest/plain_hooks.c: __tsan_read_range() and __tsan_write_range(), by names of our own. */
void rf_hook_read_range(void *addr, size_t size) RF_OURS;
void rf_hook_write_range(void *addr, size_t size) RF_OURS;

#define PAGE ((uintptr_t)4096)

struct block {
    uintptr_t at;
    struct block *next;
};

/* Under the lock of guest/modules.c. */
static struct block *blocks;
static struct rf_scan scan; /* a hook's number is the offset of its template */

static uint32_t hook_named(const char *name)
{
    for (const char *at = rf_near_names;;) {
        uint32_t offset;
        __builtin_memcpy(&offset, at, sizeof offset);
        at += sizeof offset;
        if (offset == RF_NO_HOOK || rf_text_same(at, name))
            return offset;
        while (*at++)
            ;
    }
}

static const char *name_of(uint32_t hook)
{
    const char *at = rf_near_names;
    for (uint32_t offset; __builtin_memcpy(&offset, at, sizeof offset), offset != RF_NO_HOOK && offset != hook;)
        for (at += sizeof offset; *at++;)
            ;
    return at + sizeof hook;
}

/* Caper's hooks take any address, so that what says more of an access than its size and kind is the same to them. */
static uint32_t hook_alike(const char *name)
{
    char plain[32];
    const char *rest = name;
    if (!rf_hook_word(&rest, "__tsan_"))
        return RF_NO_HOOK;
    rf_hook_word(&rest, "unaligned_");
    rf_hook_word(&rest, "volatile_");
    rf_format(plain, sizeof plain, "__tsan_%s", rest);
    return hook_named(plain);
}

static uint32_t wanted(void *unused, const char *name, const uintptr_t *slot)
{
    (void)unused;
    uint32_t hook = hook_named(name);
    if (hook == RF_NO_HOOK && rf_caper_on)
        hook = hook_alike(name);
    return hook != RF_NO_HOOK && rf_module_leads_here(&scan.image, *slot, name) ? hook : RF_NO_HOOK;
}

/* -- the copies ----------------------------------------------------------------------------------------------------------------- */

#define GATE_ROOM ((size_t)1 << RF_GATE_ROOM_BITS)

/* Gates, pacer's or FIB's, follow the copies, in the order of the names. */
static bool has_gates(void)
{
    return (rf_pacer || rf_policy == RF_POLICY_FIB) && !rf_tap;
}

static size_t gates_at(void)
{
    return ((size_t)(rf_near_end - rf_near_begin) + GATE_ROOM - 1) & ~(GATE_ROOM - 1);
}

static size_t block_size(void)
{
    size_t count = 0;
    uint32_t offset;
    for (const char *at = rf_near_names; __builtin_memcpy(&offset, at, sizeof offset), offset != RF_NO_HOOK; count++)
        for (at += sizeof offset; *at++;)
            ;
    return (gates_at() + (has_gates() ? count * GATE_ROOM : 0) + PAGE - 1) & ~(PAGE - 1);
}

/* The template of a hook's gate: 0 for an access inside one line, 1 to 4 for 2, 4, 8 and 16 bytes that may lie in two, 5 for a range; 6: FIB's. */
static unsigned gate_kind(const char *name)
{
    if (!rf_pacer)
        return 6;
    if (rf_text_has(name, "range"))
        return 5;
    if (rf_text_has(name, "16"))
        return 4;
    return !rf_text_has(name, "unaligned") ? 0 : rf_text_has(name, "2") ? 1 : rf_text_has(name, "4") ? 2 : 3;
}

/* By a hook's number / 16, as templates are aligned: where its gate lies in each block. What enters and leaves functions has none, nor have cold
 * hooks, whose caller keeps its registers: 0. */
#define TEMPLATES_MOST (5 * PAGE)
static uint16_t gates[TEMPLATES_MOST / 16];

static void fill_gate(uint8_t *block, uint32_t hook, const char *name, uint8_t *gate)
{
    if (hook >= TEMPLATES_MOST) /* one hook's gate would be another's */
        rf_die("the templates of hooks take more than %zu bytes", (size_t)TEMPLATES_MOST);
    gates[hook / 16] = (uint16_t)(gate - block);
    __builtin_memcpy(gate, rf_near_gates + gate_kind(name) * GATE_ROOM, GATE_ROOM);
    for (size_t i = 0; i + 8 <= GATE_ROOM; i++) {
        uint64_t word;
        __builtin_memcpy(&word, gate + i, 8);
        if (word == RF_PUT_GATE) {
            word = rf_pacer ? (uintptr_t)&rf_gate[RF_GATE_OPEN] : (uintptr_t)&rf_fib_waiters;
            __builtin_memcpy(gate + i, &word, 8);
        } else if (word == RF_PUT_YIELD) {
            word = (uintptr_t)&rf_fib_yields;
            __builtin_memcpy(gate + i, &word, 8);
        } else if ((uint32_t)word == RF_PUT_HOOK) {
            uint32_t distance = (uint32_t)(block + hook - (gate + i + 4));
            __builtin_memcpy(gate + i, &distance, 4);
        }
    }
}

/* Where a hook goes on, by the constant that stands for it; 0: it is none. */
static uintptr_t way_of(uint64_t put)
{
#define WAY(size)                                                                                                          \
    if (put == RF_PUT_SLOW + RF_PUT_WAYS + 2 * (size))                                                                     \
        return (uintptr_t)&rf_slow_read##size;                                                                             \
    if (put == RF_PUT_SLOW + RF_PUT_WAYS + 2 * (size) + 1)                                                                 \
        return (uintptr_t)&rf_slow_write##size;
    RF_SLOW_SIZES(WAY)
#undef WAY
    return put == RF_PUT_SLOW          ? (uintptr_t)&rf_slow_access
           : put == RF_PUT_COLD        ? (uintptr_t)&rf_cold_access
           : put == RF_PUT_READ_RANGE  ? (uintptr_t)&rf_hook_read_range
           : put == RF_PUT_WRITE_RANGE ? (uintptr_t)&rf_hook_write_range
                                       : 0;
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
        uintptr_t function = word >> 32 == RF_PUT_SLOW >> 32 ? way_of(word) : 0;
        if (function) {
            __builtin_memcpy(to + i, &function, 8);
            i += 7;
        } else if ((uint32_t)word - RF_PUT_TLS < sizeof(struct rf_hot)) {
            uint32_t half = (uint32_t)word - RF_PUT_TLS + offset;
            __builtin_memcpy(to + i, &half, 4);
            i += 3;
        }
    }
    if (rf_tap)
        rf_tap_hooks(to);
    uint32_t hook;
    uint8_t *gate = to + gates_at();
    for (const char *at = rf_near_names; has_gates() && (__builtin_memcpy(&hook, at, sizeof hook), hook != RF_NO_HOOK);) {
        at += sizeof hook;
        if (!rf_text_has(at, "func") && !rf_text_has(at, "cold"))
            fill_gate(to, hook, at, gate);
        gate += GATE_ROOM;
        while (*at++)
            ;
    }
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

/* -- reads that writes cover ------------------------------------------------------------------------------------------------------ */

static struct rf_hook kinds[TEMPLATES_MOST / 16]; /* by a hook's number / 16; RF_HOOK_NONE: not asked for yet */
static struct rf_cover cover;                     /* of the module that is changed; without jumps: none are left out */

static struct rf_hook kind_of(uint32_t hook)
{
    if (hook >= TEMPLATES_MOST)
        return (struct rf_hook){ .kind = RF_HOOK_OTHER };
    struct rf_hook *kind = &kinds[hook / 16];
    if (kind->kind == RF_HOOK_NONE)
        *kind = rf_hook_named(name_of(hook));
    return *kind;
}

static void cover_begin(const struct rf_image *image)
{
    cover = (struct rf_cover){ .scan = &scan, .hook = kind_of };
    if (rf_options.read_before_write || rf_tap || rf_refuses || rf_caper_on || rf_pacer)
        return;
    for (unsigned i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        if (!rf_scan_is_code(header))
            continue;
        if (cover.jumps.begin) { /* jumps from one segment to another are not looked for */
            cover.jumps.begin = NULL;
            return;
        }
        cover.jumps.begin = (const uint8_t *)image->base + header->p_vaddr;
        cover.jumps.end = cover.jumps.begin + header->p_filesz;
    }
    if (!cover.jumps.begin)
        return;
    cover.jumps.bits = rf_pages(rf_jumps_bytes(&cover.jumps));
    rf_jumps_find(&cover.jumps);
}

static bool is_covered(const struct rf_hook_call *call)
{
    bool covered = cover.jumps.bits && rf_covered(&cover, call);
    rf_cover_pass(&cover, call);
    return covered;
}

static void cover_end(void)
{
    if (cover.jumps.bits)
        rf_pages_back(cover.jumps.bits, rf_jumps_bytes(&cover.jumps));
}

/* -- changing code -------------------------------------------------------------------------------------------------------------- */

static struct {
    const struct block *block;
    struct rf_pair_offsets unchecked;
    unsigned calls, removed, covered;
} change;

static void change_call(void *unused, const struct rf_hook_call *call)
{
    (void)unused;
    uint8_t form[6];
    if (rf_pair_offsets_have(&change.unchecked, &scan.image, call) ||
        (rf_caper_on && !rf_caper_needs(call, name_of(call->hook)))) {
        rf_patch_nothing(call->length, call->jump, form);
        rf_patch_add(call->at, form, call->length);
        change.removed++;
        return;
    }
    if (is_covered(call)) {
        rf_patch_nothing(call->length, call->jump, form);
        rf_patch_add(call->at, form, call->length);
        change.covered++;
        return;
    }
    uint32_t gate = call->hook < TEMPLATES_MOST ? gates[call->hook / 16] : 0;
    uintptr_t target = change.block->at + (gate ? gate : call->hook);
    if (gate && rf_pacer && rf_quiet_takes(call, target))
        rf_patch_nothing(call->length, call->jump, form);
    else
        rf_patch_form(call->at, call->length, call->jump, target, form);
    rf_patch_add(call->at, form, call->length);
    change.calls++;
}

static bool at_start = true; /* what is there now is there for ever: guest/quiet.h, 4 */

bool rf_module_change(const struct rf_image *image, const char *name)
{
    if (rf_pair_is_set())
        return rf_pair_change(image, name);
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
        if (rf_pacer && has_gates() && at_start && !rf_gate[RF_GATE_KNOWN] && header->p_memsz == header->p_filesz)
            rf_quiet_code(begin, end);
    }
    change.block = low < high ? block_near(low, high) : NULL;
    change.calls = change.removed = change.covered = 0;
    change.unchecked = rf_pair_offsets(rf_unchecked(), image, name);
    if (!change.block)
        return false;
    if (rf_caper_on)
        rf_caper_module(image, name);
    cover_begin(image);
    rf_scan_calls(&scan, change_call);
    cover_end();
    bool done = rf_patch_write();
    rf_unchecked_count(change.removed, change.calls + change.covered + change.removed);
    if (rf_options.verbosity)
        rf_say("%u calls of hooks in the module at 0x%zx reach copies at 0x%zx%s; %u reads are covered by the writes behind them", change.calls,
               (size_t)image->base, (size_t)change.block->at, done ? "" : ", except some that could not be changed", change.covered);
    return done;
}

void rf_module_loaded(void)
{
    if (rf_tap)
        rf_tap->modules();
    if (rf_options.patch_calls && __libc_single_threaded)
        rf_modules_look();
    at_start = false;
}

void rf_module_begins(void)
{
    if (rf_options.patch_calls && rf_modules_are_new())
        rf_modules_look();
}
