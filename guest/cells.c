#include "guest/cells.h"

#include "guest/accu.h"
#include "guest/policy.h"
#include "guest/spin.h"

#define RECENT 4096u
#define GROUPS 16u
#define IN_BLOCKS (RF_MOMENT_BLOCKS / 8) /* pairs may have so many, so that moments have room */

/* Threads make pairs all the time: those of different groups share no line of the cache.
 * A pair's number is in `recent` after the pair itself is there; on x86 nobody sees these stores in another order. Whoever finds a number
 * looks whether it is the pair that he wants: pairs stay what they are while he is busy. */
static struct group {
    uint32_t lock;
    uint32_t next, end; /* of the block that is being filled */
    uint32_t pad[13];
    uint32_t recent[RECENT];
} groups[GROUPS];

static uint32_t blocks_taken; /* that have any pairs. By atomic additions, or with the world stopped */

static void take_pairs(struct group *group)
{
    if (__atomic_fetch_add(&blocks_taken, 1, __ATOMIC_RELAXED) < IN_BLOCKS) {
        uint32_t block = rf_moments_take();
        if (block) {
            rf_moment_blocks[block] = (struct rf_moment_block){ RF_PAIRS, RF_PAIRS };
            group->next = block << RF_MOMENT_BLOCK_BITS;
            group->end = group->next + RF_MOMENT_BLOCK;
            return;
        }
    }
    __atomic_fetch_sub(&blocks_taken, 1, __ATOMIC_RELAXED);
}

static uint32_t new_pair(struct group *group, uint32_t w, uint32_t r)
{
    uint32_t name = 0;
    rf_spin_lock(&group->lock);
    if (group->next == group->end)
        take_pairs(group);
    if (group->next < group->end) {
        name = group->next++;
        *rf_pair_at(name) = (struct rf_pair){ w, r };
    }
    rf_spin_unlock(&group->lock);
    return name;
}

uint32_t rf_cell_named(uint32_t w, uint32_t r)
{
    if (w == r)
        return w;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS || rf_accu, 0))
        return 0;
    struct group *group = &groups[rf_hot.self->number % GROUPS];
    uint32_t *place = &group->recent[(((uint64_t)w << 27 | r) * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
    uint32_t name = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (__builtin_expect(!name || rf_pair_at(name)->w != w || rf_pair_at(name)->r != r, 0)) {
        name = new_pair(group, w, r);
        if (name)
            __atomic_store_n(place, name, __ATOMIC_RELEASE);
    }
    return name;
}

void rf_cells_forget(void)
{
    for (unsigned i = 0; i < GROUPS; i++) {
        if (groups[i].end)
            memset(groups[i].recent, 0, sizeof groups[i].recent);
        groups[i].next = groups[i].end = 0;
    }
}

void rf_cells_keep(uint32_t blocks)
{
    blocks_taken = blocks;
}
