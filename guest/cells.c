#include "guest/cells.h"

#include "guest/policy.h"
#include "guest/spin.h"

#define RECENT_BITS 9
#define RECENT (1u << RECENT_BITS)
#define GROUPS 16u

/* Threads make pairs all the time: those of different groups share no line of the cache. All under the group's lock. */
static struct group {
    uint32_t lock;
    uint32_t next, end; /* of the block that is being filled */
    uint32_t pad;
    struct {
        uint32_t w, r, name, pad; /* name 0: none */
    } recent[RECENT];
} __attribute__((aligned(64))) groups[GROUPS];

static void take_pairs(struct group *group)
{
    uint32_t block = rf_moments_take(true);
    if (!block)
        return;
    rf_moment_blocks[block] = (struct rf_moment_block){ RF_PAIRS, RF_PAIRS };
    group->next = block << RF_MOMENT_BLOCK_BITS;
    group->end = group->next + RF_MOMENT_BLOCK;
}

static uint32_t new_pair(struct group *group, uint32_t w, uint32_t r)
{
    if (group->next == group->end)
        take_pairs(group);
    if (group->next == group->end)
        return 0;
    *rf_pair_at(group->next) = (struct rf_pair){ w, r };
    return group->next++;
}

uint32_t rf_cell_named(uint32_t w, uint32_t r)
{
    if (w == r)
        return w;
    if (__builtin_expect(rf_policy != RF_POLICY_CAS, 0))
        return 0;
    struct group *group = &groups[rf_hot.self->number % GROUPS];
    unsigned at = (unsigned)((((uint64_t)w << 27 | r) * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - RECENT_BITS));
    rf_spin_lock(&group->lock);
    uint32_t name = group->recent[at].name;
    if (!name || group->recent[at].w != w || group->recent[at].r != r) {
        name = new_pair(group, w, r);
        group->recent[at].w = w;
        group->recent[at].r = r;
        group->recent[at].name = name;
    }
    rf_spin_unlock(&group->lock);
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
