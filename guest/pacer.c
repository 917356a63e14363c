#include "guest/pacer.h"

#include <sys/syscall.h>
#include <time.h>

#include "guest/granule.h"
#include "guest/options.h"
#include "guest/policy.h"
#include "guest/quiet.h"
#include "guest/seen.h"
#include "guest/spin.h"
#include "guest/system.h"
#include "guest/threads.h"
#include "guest/verdict.h"
#include "sample/periods.h"

#define WORDS_OF_LINE ((1u << RF_LINE_BITS) / sizeof(uint64_t))
#define LINE_BYTES ((uintptr_t)1 << RF_LINE_BITS)
#define SETS_AT_ONCE 64u /* recorded accesses between two looks at the time */

RF_MODE bool rf_pacer;
uint8_t rf_gate[3];

/* Under its lock; `work` is added to without. */
static struct {
    uint32_t lock;
    bool transactions; /* there are such */
    bool by_time;
    uint32_t first_time; /* milliseconds */
    uint32_t at_once;    /* epochs that a thread counts by itself before it adds them */
    struct periods sampler;
    struct rf_options options;
    struct rf_engine engine;
    uint64_t pad[8];
    uint64_t work; /* its line is written all the time */
    uint64_t pad_after[8];
} sampling;

/* ---- periods ---- */

static uint32_t milliseconds(void)
{
    struct timespec now;
    RF_SYSCALL(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

/* Under the lock. Work is what is like work in periods and outside of them, so that it corrects the rate: epochs are, recorded accesses are
 * not. */
static void turn(uint32_t number, bool work)
{
    struct rf_event event = { .op = work ? RF_SIGNAL : RF_READ, .number = number };
    while (periods_turn(&sampling.sampler, &event) != RF_OP_COUNT) {
    }
    bool samples = sampling.sampler.sampling;
    if (rf_gate[RF_GATE_SAMPLING] == samples && rf_detour != samples)
        return;
    if (samples && !rf_gate[RF_GATE_KNOWN]) { /* before anything is recorded */
        rf_quiet_end();
        __atomic_store_n(&rf_gate[RF_GATE_KNOWN], 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&rf_gate[RF_GATE_SAMPLING], samples, __ATOMIC_RELEASE);
    __atomic_store_n(&rf_gate[RF_GATE_OPEN], samples || sampling.transactions, __ATOMIC_RELEASE);
    __atomic_store_n(&rf_detour, !samples, __ATOMIC_RELEASE);
}

/* Whoever finds the lock taken leaves the look to its holder, or to the next one. Work is read under the lock: numbers never go back. */
static __attribute__((noinline)) void look(bool work)
{
    if (__atomic_exchange_n(&sampling.lock, 1, __ATOMIC_ACQUIRE))
        return;
    turn(sampling.by_time ? milliseconds() - sampling.first_time
                          : (uint32_t)__atomic_load_n(&sampling.work, __ATOMIC_RELAXED),
         work);
    rf_spin_unlock(&sampling.lock);
}

void rf_pacer_work(struct rf_self *self)
{
    if (++self->pacer_work < sampling.at_once)
        return;
    __atomic_fetch_add(&sampling.work, 2 * (uint64_t)self->pacer_work, __ATOMIC_RELAXED);
    self->pacer_work = 0;
    look(true);
}

void rf_pacer_confined(struct rf_self *self)
{
    if (!rf_pacer || rf_gate[RF_GATE_KNOWN])
        return;
    bool mine = rf_busy_enter(self);
    rf_spin_lock(&sampling.lock);
    rf_quiet_end();
    rf_spin_unlock(&sampling.lock);
    rf_busy_leave(self, mine);
}

void rf_pacer_opens(struct rf_self *self)
{
    if (__atomic_load_n(&sampling.transactions, __ATOMIC_ACQUIRE))
        return;
    bool mine = rf_busy_enter(self);
    rf_spin_lock(&sampling.lock);
    if (!rf_gate[RF_GATE_KNOWN])
        rf_quiet_end();
    __atomic_store_n(&rf_gate[RF_GATE_OPEN], 1, __ATOMIC_RELEASE);
    __atomic_store_n(&sampling.transactions, true, __ATOMIC_RELEASE);
    rf_spin_unlock(&sampling.lock);
    rf_busy_leave(self, mine);
}

bool rf_pacer_begin(void)
{
    const char *name = rf_options.detector, *mine = "pacer";
    while (*name && *name == *mine)
        name++, mine++;
    rf_pacer = *name == *mine && !rf_options.stats && !rf_options.escape && rf_options.on_race[0] == 'r';
    if (!rf_pacer)
        return false;
    sampling.by_time = rf_options.sample_by[0] == 't';
    uint32_t usual = sampling.by_time ? 10 : 100, period = rf_options.period ? (uint32_t)rf_options.period : usual;
    sampling.options.rate = rf_share_of(rf_options.rate);
    sampling.options.period = period;
    sampling.options.seed = (uint64_t)rf_options.seed * UINT64_C(0xd1342543de82ef95);
    sampling.engine.options = &sampling.options;
    sampling.at_once = sampling.by_time ? 8 : period < 16 ? 1 : period / 16;
    sampling.first_time = milliseconds();
    periods_init(&sampling.sampler, &sampling.engine);
    turn(0, true);
    return true;
}

/* ---- lines ---- */

static uint8_t asking[64]; /* locks, each of many lines */

static bool line_has_any(const uint64_t *first)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < WORDS_OF_LINE; i++)
        any |= __atomic_load_n(&first[i], __ATOMIC_RELAXED);
    return any;
}

/* Words of the line were cleared: invariant 3. Who finds another asking leaves the byte as it is: it says too much, which does no harm. */
static void look_at_line(uint64_t *word)
{
    const uint64_t *first = (const uint64_t *)((uintptr_t)word & ~(LINE_BYTES - 1));
    uint8_t *line = rf_line(word), *lock = &asking[(uintptr_t)line % sizeof asking], asked = RF_LINE_ASKED;
    if (!__atomic_load_n(line, __ATOMIC_RELAXED) || line_has_any(first) || __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        return;
    __atomic_store_n(line, RF_LINE_ASKED, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (line_has_any(first))
        __atomic_store_n(line, RF_LINE_KNOWN, __ATOMIC_RELAXED);
    else
        __atomic_compare_exchange_n(line, &asked, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

void rf_pacer_sets(struct rf_self *self, uint64_t *word)
{
    uint8_t *line = rf_line(word);
    if (__atomic_load_n(line, __ATOMIC_RELAXED) != RF_LINE_KNOWN)
        __atomic_store_n(line, RF_LINE_KNOWN, __ATOMIC_RELAXED);
    if (sampling.by_time && self && ++self->pacer_sets % SETS_AT_ONCE == 0)
        look(false);
}

/* The first line from here on, before `end`, of which something may be known; `end` if there is none. Where it may be asked, a patch that
 * was never touched needs no look at its lines, which for large blocks is most of the way. */
static uint8_t *next_known(uint8_t *line, uint8_t *end, bool patches)
{
    const uintptr_t patch = RF_PATCH >> RF_LINE_BITS;
    while (line < end && !__atomic_load_n(line, __ATOMIC_RELAXED)) {
        uintptr_t number = (uintptr_t)line - RF_LINES + ((RF_WORDS - RF_PATCHES) >> RF_LINE_BITS), step = 1; /* as patches count */
        if (patches && number % patch == 0 && !((const uint8_t *)RF_TOUCHED)[number / patch])
            step = patch;
        else if ((uintptr_t)line % 8 == 0 && !__atomic_load_n((const uint64_t *)(const void *)line, __ATOMIC_RELAXED))
            step = 8;
        line = step < (uintptr_t)(end - line) ? line + step : end;
    }
    return line;
}

bool rf_pacer_knows_nothing(uintptr_t addr, size_t size)
{
    uint8_t *end = rf_line(rf_word(addr + size - 1)) + 1;
    return !rf_gate[RF_GATE_KNOWN] || next_known(rf_line(rf_word(addr)), end, true) == end;
}

/* ---- accesses outside of periods ---- */

/* What is left of a word in a plain form, if all that the access meets happens before it. false: it does not, or there is no such word. */
static inline bool passes_quickly(const struct rf_step *step, uint64_t word, unsigned mask, uint64_t *next)
{
    unsigned m = RF_WORD_M(word), left = m & ~mask;
    uint32_t y = RF_WORD_Y(word), x = RF_WORD_X(word);
    bool writes = step->flags & RF_A_WRITE, written = word & RF_WRITES_BIT;
    *next = word;
    if ((word & RF_ODD_BIT) || rf_cell_is_pair(x) || ((!written || (mask & ~m)) && !rf_step_ordered(step, x)))
        return false;
    bool meets_y = m & mask, after_y = !meets_y || rf_step_ordered(step, y);
    if ((written || writes) && !after_y)
        return false;
    if (step->flags & RF_A_ATOMIC) /* plain histories stay as they are */
        return true;
    if (meets_y && rf_moment_is_now(step->self, y) && (written || !writes) && !left)
        return true;
    if (!writes) {
        if (!written && meets_y && after_y)
            *next = left ? RF_WORD(left, y, x) : x ? RF_WORD(0xff, x, 0) | RF_WRITES_BIT : 0;
        return true;
    }
    if (mask == 0xff || (!x && !left)) {
        *next = 0;
        return true;
    }
    *next = RF_WORD(left, y, 0) | (word & RF_WRITES_BIT);
    return !x;
}

/* The word has changed. What the thread has seen of it in this epoch (guest/seen.h) may not be there any more: in the next period it
 * counts as not seen. */
static void changed(uint64_t *place)
{
    rf_seen_forget();
    if (!__atomic_load_n(place, __ATOMIC_RELAXED))
        look_at_line(place);
}

bool rf_pacer_granule(uint64_t *place, unsigned mask, struct rf_step *step)
{
    uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE), next;
    step->race = 0;
    while (word && !rf_word_has_units(word) && passes_quickly(step, word, mask, &next)) {
        if (next == word)
            return false;
        if (__atomic_compare_exchange_n(place, &word, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            changed(place);
            return false;
        }
    }
    if (!word)
        return false;
    rf_step_locked(place, mask, step);
    changed(place);
    return step->race;
}

/* The bytes from addr to end, inside one line. */
static bool step_line(struct rf_step *step, uintptr_t addr, uintptr_t end, uintptr_t pc, size_t size, struct rf_found *race)
{
    bool races = false;
    for (uintptr_t length; addr < end; addr += length) {
        unsigned offset = addr % RF_GRANULE;
        length = RF_GRANULE - offset < end - addr ? RF_GRANULE - offset : end - addr;
        if (rf_pacer_granule(rf_word(addr), ((1u << length) - 1) << offset, step) && !races) {
            *race = rf_found_by(step, addr, length, rf_moment_note_here(step->self, pc, step->flags, size));
            races = true;
        }
    }
    return races;
}

bool rf_pacer_step(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc, struct rf_found *race)
{
    struct rf_step step = { .self = self, .flags = flags, .passes = true };
    if (!rf_gate[RF_GATE_KNOWN])
        return false;
    if (__builtin_expect(addr % LINE_BYTES + size <= LINE_BYTES, 1))
        return *rf_line(rf_word(addr)) && step_line(&step, addr, addr + size, pc, size, race);
    uint8_t *first = rf_line(rf_word(addr)), *end = rf_line(rf_word(addr + size - 1)) + 1;
    uintptr_t base = addr & ~(LINE_BYTES - 1), last = addr + size;
    bool races = false;
    for (uint8_t *line = first; (line = next_known(line, end, true)) < end; line++) {
        uintptr_t from = base + (uintptr_t)(line - first) * LINE_BYTES, to = from + LINE_BYTES;
        struct rf_found found;
        if (step_line(&step, from < addr ? addr : from, to > last ? last : to, pc, size, &found) && !races) {
            *race = found;
            races = true;
        }
    }
    return races;
}

void rf_pacer_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    struct rf_found race;
    rf_busy_begin(self);
    bool races = rf_pacer_step(self, addr, size, flags, pc, &race);
    rf_busy_end(self);
    if (__builtin_expect(races, 0))
        rf_race_found(self, &race);
}

/* ---- new memory ---- */

void rf_pacer_clear(uint64_t *from, uint64_t *to)
{
    uint8_t *end = rf_line(to - 1) + 1;
    /* Who gives patches back has said already that they are not touched. */
    for (uint8_t *line = rf_line(from); (line = next_known(line, end, false)) < end; line++) {
        uint64_t *word = (uint64_t *)((((uintptr_t)line - RF_LINES) << RF_LINE_BITS) + RF_WORDS),
                 *after = word + WORDS_OF_LINE;
        for (uint64_t *at = word < from ? from : word; at < to && at < after; at++)
            rf_word_clear(at);
        look_at_line(word);
    }
}
