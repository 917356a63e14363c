#include "guest/escape.h"

#include <emmintrin.h>

#include "guest/caper.h"
#include "guest/heap.h"
#include "guest/memory.h"
#include "guest/options.h"
#include "guest/origins.h"
#include "guest/policy.h"
#include "guest/spin.h"
#include "guest/tap.h"
#include "guest/threads.h"

#define LEAVES ((size_t)1 << (46 - RF_ESCAPE_LEAF))
#define LEAF_BYTES (((size_t)1 << RF_ESCAPE_LEAF) / 16 * sizeof(uint16_t))
#define LARGEST ((size_t)1 << 24) /* blocks above it are taken as escaped: their part of the table would be large, too */

RF_MODE uint16_t **rf_escape_leaves;
struct rf_fresh *rf_fresh_blocks;

/* Blocks that have escaped and whose content is still to be looked at. Under the lock, which busy threads hold. */
static struct {
    uint32_t lock;
    uintptr_t *list;
    size_t count, room;
    uintptr_t stack; /* of the thread that publishes, if it is not known yet to have escaped, */
    size_t stack_size; /* else 0 */
    bool reaches_stack; /* an address of it was met */
} left;

void rf_escape_begin(void)
{
    if (!rf_options.escape)
        return;
    if (rf_tap && !rf_caper_on)
        rf_die("--escape is for --detector=fasttrack");
    rf_escape_leaves = rf_reserve(LEAVES * sizeof *rf_escape_leaves);
    if (!rf_escape_leaves)
        rf_die("--escape: the kernel refuses %zu bytes of addresses", LEAVES * sizeof *rf_escape_leaves);
    rf_heap_apart = 1;
    if (rf_caper_on)
        rf_fresh_blocks = rf_reserve(RF_ESCAPED * sizeof *rf_fresh_blocks); /* NULL: it costs more */
}

/* The states from here on, up to the end of the leaf. */
static uint16_t *make_place(uintptr_t masked)
{
    uint16_t **leaf = &rf_escape_leaves[masked >> RF_ESCAPE_LEAF], *none = NULL;
    if (!__atomic_load_n(leaf, __ATOMIC_ACQUIRE)) {
        uint16_t *fresh = rf_pages(LEAF_BYTES);
        if (!__atomic_compare_exchange_n(leaf, &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            rf_pages_back(fresh, LEAF_BYTES);
    }
    return rf_escape_place(masked);
}

/* All of a block; one that lies in two leaves is a mapping of its own. */
static void set_states(uintptr_t addr, size_t size, uint16_t state)
{
    uintptr_t masked = addr & RF_ADDRESS_MASK, end = masked + size;
    while (masked < end) {
        uint16_t *place = make_place(masked);
        uintptr_t stop = (masked | ((1u << RF_ESCAPE_LEAF) - 1)) + 1;
        stop = stop < end ? stop : end;
        for (; masked < stop && ((uintptr_t)place & 7 || stop - masked < 64); masked += 16)
            __atomic_store_n(place++, state, __ATOMIC_RELAXED);
        for (; stop - masked >= 64; masked += 64, place += 4) /* four at once, each of which others see whole */
            __atomic_store_n((uint64_t *)(void *)place, state * UINT64_C(0x0001000100010001), __ATOMIC_RELAXED);
        for (; masked < stop; masked += 16)
            __atomic_store_n(place++, state, __ATOMIC_RELAXED);
    }
}

/* What an earlier block left there. */
static void clear_states(uintptr_t addr, size_t size)
{
    uintptr_t masked = addr & RF_ADDRESS_MASK, end = masked + size;
    while (masked < end) {
        uintptr_t stop = (masked | ((1u << RF_ESCAPE_LEAF) - 1)) + 1;
        stop = stop < end ? stop : end;
        if (rf_escape_place(masked))
            set_states(masked, stop - masked, 0);
        masked = stop;
    }
}

/* The cell of this owner, if it has the block, has none any more. */
static void empty_cell(uint32_t owner, uintptr_t block)
{
    if (!rf_fresh_blocks)
        return;
    struct rf_fresh *cell = &rf_fresh_blocks[owner - 1];
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&cell->at, __ATOMIC_RELAXED) == block)
        __atomic_store_n(&cell->size, 0, __ATOMIC_RELAXED);
}

static void fill_cell(struct rf_self *self, uintptr_t block, size_t size)
{
    uint32_t owner = rf_escape_owner(self);
    struct rf_fresh *cell = &rf_fresh_blocks[owner - 1];
    bool mine = rf_busy_enter(self);
    __atomic_store_n(&cell->size, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&cell->at, block, __ATOMIC_RELEASE);
    __atomic_store_n(&cell->size, size, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (rf_escape_state(block) != owner) /* a number that looks like its address */
        __atomic_store_n(&cell->size, 0, __ATOMIC_RELAXED);
    rf_busy_leave(self, mine);
}

void rf_escape_not_fresh(uintptr_t block)
{
    uint32_t state = rf_escape_leaves ? rf_escape_state(block) : 0;
    if (state && !(state & RF_ESCAPED))
        empty_cell(state, block);
}

#define FEW ((size_t)128)

/* The same, of a small block, as most are. False: it is not small, or its leaf is still to be made. */
static inline bool set_few(uintptr_t addr, size_t size, uint16_t state)
{
    uint16_t *place = size < FEW ? rf_escape_place(addr & RF_ADDRESS_MASK) : NULL;
    if (!place || addr % (1u << RF_ESCAPE_LEAF) > (1u << RF_ESCAPE_LEAF) - FEW)
        return false;
    for (uint16_t *end = place + size / 16; place < end; place++)
        __atomic_store_n(place, state, __ATOMIC_RELAXED);
    return true;
}
_Static_assert(FEW < RF_FRESH_LEAST, "what is small has no cell");

bool rf_escape_fresh(struct rf_self *self, uintptr_t addr, size_t size)
{
    uint32_t owner = rf_escape_owner(self);
    if (__builtin_expect(owner != RF_ESCAPED, 1) && set_few(addr, size, (uint16_t)owner))
        return true;
    bool private = size <= LARGEST && rf_escape_owner(self) != RF_ESCAPED;
    private ? set_states(addr, size, (uint16_t)rf_escape_owner(self)) : clear_states(addr, size);
    if (private && rf_fresh_blocks && size >= RF_FRESH_LEAST)
        fill_cell(self, addr, size);
    return private;
}

static bool is_private(const struct rf_self *self, uintptr_t addr)
{
    uint32_t owner = rf_escape_owner(self);
    return owner != RF_ESCAPED && rf_escape_state(addr) == owner;
}

bool rf_escape_gone(struct rf_self *self, uintptr_t addr, size_t size)
{
    rf_escape_flush(self);
    bool private = is_private(self, addr);
    uint32_t state = rf_escape_state(addr);
    if (state)
        set_states(addr, size, 0);
    if (state && !(state & RF_ESCAPED))
        empty_cell(state, addr);
    return private;
}

/* The block that this value points to or into: it escapes now. The heap leaves room behind each block (rf_heap_apart), so that an address
 * just behind its end is inside, too, and never that of another. */
static void mark(uintptr_t value)
{
    struct rf_block block;
    if (value >= RF_USER_END || value < 4096 || !rf_escape_place(value & RF_ADDRESS_MASK))
        return;
    uint32_t state = rf_escape_state(value);
    if (!state || state & RF_ESCAPED || !rf_heap_block(value, &block) || block.freed)
        return;
    rf_origin_escapes_note(block.note);
    set_states(block.addr, block.usable, (uint16_t)(state | RF_ESCAPED));
    empty_cell(state, block.addr);
    if (left.count == left.room) {
        size_t room = left.room ? 2 * left.room : 512;
        uintptr_t *larger = rf_pages(room * sizeof *larger);
        for (size_t i = 0; i < left.count; i++)
            larger[i] = left.list[i];
        if (left.list)
            rf_pages_back(left.list, left.room * sizeof *larger);
        left.list = larger;
        left.room = room;
    }
    left.list[left.count++] = block.addr;
}

#define AT_ONCE 128u

/* Of four words from there on: all ones for each that may be an address, by its upper half. Each half is read whole, as if by itself. */
static inline __m128i address_like(uintptr_t at)
{
    __m128 one = _mm_castsi128_ps(_mm_loadu_si128((const __m128i *)at));
    __m128 other = _mm_castsi128_ps(_mm_loadu_si128((const __m128i *)(at + 16)));
    __m128i halves = _mm_castps_si128(_mm_shuffle_ps(one, other, _MM_SHUFFLE(3, 1, 3, 1)));
    return _mm_cmpeq_epi32(_mm_and_si128(halves, _mm_set1_epi32((int)-(RF_USER_END >> 32))), _mm_setzero_si128());
}

/* From here on, up to what may be an address, or has to be looked at because less than AT_ONCE bytes are left. A block is looked through
 * while its thread holds a lock of the program's, and most that large ones hold are numbers. */
static uintptr_t skip_numbers(uintptr_t at, uintptr_t to)
{
    for (; to - at >= AT_ONCE; at += AT_ONCE) {
        __m128i low = _mm_or_si128(address_like(at), address_like(at + 32));
        __m128i high = _mm_or_si128(address_like(at + 64), address_like(at + 96));
        if (_mm_movemask_epi8(_mm_or_si128(low, high)))
            break;
    }
    return at;
}

static void mark_all_in(uintptr_t from, uintptr_t to)
{
    uintptr_t at = (from + 7) & ~(uintptr_t)7;
    while (at + 8 <= to) {
        at = skip_numbers(at, to);
        uintptr_t end = to - at < AT_ONCE ? to : at + AT_ONCE;
        for (; at + 8 <= end; at += 8) {
            uintptr_t value = __atomic_load_n((const uintptr_t *)at, __ATOMIC_RELAXED);
            left.reaches_stack |= value - left.stack < left.stack_size;
            if (value - 4096 < RF_USER_END - 4096 && !rf_is_escaped(value)) /* most are no addresses at all */
                mark(value);
        }
    }
}

static bool on_own_stack(struct rf_self *self, uintptr_t addr)
{
    uintptr_t low;
    size_t size;
    if (self->own_size) /* what rf_thread_stack() said */
        return addr - self->own_stack < self->own_size;
    if (!rf_thread_stack(self, &low, &size))
        return false;
    if (!self->stack_escaped && self == rf_hot.self) {
        self->own_stack = low;
        self->own_size = size;
        rf_escape_know_stack(self);
    }
    return addr - low < size;
}

bool rf_escape_own_stack(struct rf_self *self, uintptr_t addr)
{
    return !self->stack_escaped && on_own_stack(self, addr);
}

/* The lock is held, and the thread runs on that stack. */
static void stack_escapes(struct rf_self *self)
{
    uintptr_t low, here = (uintptr_t)__builtin_frame_address(0);
    size_t size;
    if (self->stack_escaped || !rf_thread_stack(self, &low, &size))
        return;
    self->stack_escaped = true;
    self->own_size = 0;
    if (self == rf_hot.self)
        rf_hot.stack_size = 0;
    rf_origin_escapes(RF_ORIGIN_STACK);
    if (here >= low && here < low + size)
        mark_all_in(here, low + size);
}

/* What was marked, and all that is reached from there, the stack of the thread that publishes it among that. NULL: it escaped by a way that was
 * not seen, and whose stacks are reached is not looked at, as others may run on them. */
static void close_over(struct rf_self *self)
{
    bool own = self && self == rf_hot.self && !self->stack_escaped;
    if (!own || !rf_thread_stack(self, &left.stack, &left.stack_size))
        left.stack_size = 0;
    do {
        while (left.count) {
            struct rf_block block;
            if (rf_heap_block(left.list[--left.count], &block) && !block.freed)
                mark_all_in(block.addr, block.addr + block.usable);
        }
        left.stack_size = left.reaches_stack ? 0 : left.stack_size;
        if (left.reaches_stack)
            stack_escapes(self);
        left.reaches_stack = false;
    } while (left.count);
    left.stack_size = 0;
}

static void publish_locked(struct rf_self *self, uintptr_t value)
{
    mark(value);
    if (!self->stack_escaped && on_own_stack(self, value))
        stack_escapes(self);
}

/* Does a store there publish what it stores? */
static bool publishes(struct rf_self *self, uintptr_t addr)
{
    return !is_private(self, addr) && (self->stack_escaped || !on_own_stack(self, addr));
}

/* Cheap, and right for nearly all values: it is no address of a block or of the stack. */
static bool is_boring(struct rf_self *self, uintptr_t value)
{
    if (value < 4096 || value >= RF_USER_END)
        return true;
    if (!self->stack_escaped && on_own_stack(self, value))
        return false;
    return rf_is_escaped(value);
}

static void publish(struct rf_self *self, uintptr_t value)
{
    if (is_boring(self, value))
        return;
    rf_spin_lock(&left.lock);
    publish_locked(self, value);
    close_over(self);
    rf_spin_unlock(&left.lock);
}

void rf_escape_value(struct rf_self *self, uintptr_t value)
{
    bool mine = rf_busy_enter(self);
    publish(self, value);
    rf_busy_leave(self, mine);
}

void rf_escape_given(struct rf_self *self, uintptr_t addr, uintptr_t value)
{
    bool mine = rf_busy_enter(self);
    if (publishes(self, addr))
        publish(self, value);
    rf_busy_leave(self, mine);
}

static void flush(struct rf_self *self)
{
    uintptr_t at = self->stored_at, end = at + self->stored_size;
    rf_escape_keep(self, 0, 0);
    if (!publishes(self, at))
        return;
    for (at = (at + 7) & ~(uintptr_t)7; at + 8 <= end; at += 8)
        publish(self, __atomic_load_n((const uintptr_t *)at, __ATOMIC_RELAXED));
}

void rf_escape_flush(struct rf_self *self)
{
    if (!self->stored_size)
        return;
    bool mine = rf_busy_enter(self);
    flush(self);
    rf_busy_leave(self, mine);
}

void rf_escape_switched(struct rf_self *self)
{
    bool mine = rf_busy_enter(self);
    if (self->stored_size)
        flush(self);
    rf_spin_lock(&left.lock);
    stack_escapes(self);
    close_over(self);
    rf_spin_unlock(&left.lock);
    rf_busy_leave(self, mine);
}

/* If it is private to somebody else, it has escaped by a way that was not seen. */
static void escape_foreign(uintptr_t addr, uint32_t state, uint32_t owner)
{
    if (__builtin_expect(!state || state & RF_ESCAPED || state == owner, 1))
        return;
    rf_spin_lock(&left.lock);
    mark(addr);
    close_over(NULL);
    rf_spin_unlock(&left.lock);
}

bool rf_escape_filters(struct rf_self *self, uintptr_t addr, size_t size)
{
    if (self->stored_size)
        flush(self);
    uint32_t state = rf_escape_state(addr), last = rf_escape_state(addr + size - 1), owner = rf_escape_owner(self);
    if (owner != RF_ESCAPED && state == owner && last == owner) {
        self->transitions[RF_T_NOT_ESCAPED]++;
        return true;
    }
    escape_foreign(addr, state, owner);
    if (last != state)
        escape_foreign(addr + size - 1, last, owner);
    return false;
}
