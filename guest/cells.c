#include "guest/cells.h"

#include "guest/accu.h"
#include "guest/policy.h"
#include "guest/spin.h"

#define RECENT 4096u
#define IN_BLOCKS (RF_MOMENT_BLOCKS / 8) /* pairs may have so many, so that moments have room */

/* A pair's number is here after the pair itself is; on x86 nobody sees these stores in another order. Whoever finds a number looks
 * whether it is the pair that he wants: pairs stay what they are while he is busy. */
static uint32_t recent[RECENT];

static struct {
    uint32_t lock;
    uint32_t next, end; /* of the block that is being filled */
    uint32_t taken;     /* blocks that have any */
} pairs;

static uint32_t new_pair(uint32_t w, uint32_t r)
{
    uint32_t name = 0;
    rf_spin_lock(&pairs.lock);
    if (pairs.next == pairs.end && pairs.taken < IN_BLOCKS) {
        uint32_t block = rf_moments_take();
        if (block) {
            rf_moment_blocks[block] = (struct rf_moment_block){ RF_PAIRS, RF_PAIRS };
            pairs.next = block << RF_MOMENT_BLOCK_BITS;
            pairs.end = pairs.next + RF_MOMENT_BLOCK;
            pairs.taken++;
        }
    }
    if (pairs.next < pairs.end) {
        name = pairs.next++;
        *rf_pair_at(name) = (struct rf_pair){ w, r };
    }
    rf_spin_unlock(&pairs.lock);
    return name;
}

uint32_t rf_cell_named(uint32_t w, uint32_t r)
{
    if (w == r)
        return w;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS || rf_accu, 0))
        return 0;
    uint32_t *place = &recent[(((uint64_t)w << 27 | r) * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
    uint32_t name = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (__builtin_expect(!name || rf_pair_at(name)->w != w || rf_pair_at(name)->r != r, 0)) {
        name = new_pair(w, r);
        if (name)
            __atomic_store_n(place, name, __ATOMIC_RELEASE);
    }
    return name;
}

void rf_cells_forget(void)
{
    memset(recent, 0, sizeof recent);
    pairs.next = pairs.end = 0;
}

void rf_cells_keep(uint32_t blocks)
{
    pairs.taken = blocks;
}
