/* Checks go whose bytes were checked before, on every way that leads to them, with nothing on it that may synchronise.
 *
 * 1. That a value which is defined anew in each round of a loop is another one each time needs no thought: the way that comes to its definition
 *    for the first time has no check of it.
 */
#include <algorithm>
#include <map>
#include <tuple>

#include "plugin/check.h"
#include "plugin/rules.h"

#define MOST_BITS 200000000 /* of all blocks together: longer functions stay as they are */

/* Those with equal terms side by side, by where they begin. */
static bool before(const rf_check &one, const rf_check &other)
{
    return std::tie(one.terms, one.offset, one.size, one.write) <
           std::tie(other.terms, other.offset, other.size, other.write);
}

class repeated
{
  public:
    explicit repeated(function *whole) : whole(whole)
    {
    }
    void find();
    bool is_worth_it() const
    {
        return checks.count() && (size_t)checks.count() * last_basic_block_for_fn(whole) < MOST_BITS;
    }
    void remove();
    bool quiet = true; /* nothing in it synchronises */

  private:
    void pass(basic_block block, sbitmap now, bool removes);
    void meet(basic_block block, sbitmap now) const;

    function *whole;
    rf_covers checks;                  /* those with equal terms are a group */
    std::map<gimple *, unsigned> made; /* where, and which */
    sbitmap *after;                    /* by block: those that were made on all ways to its end */
};

void repeated::find()
{
    std::map<rf_check, std::vector<gimple *>, bool (*)(const rf_check &, const rf_check &)> places(before);
    basic_block block;
    FOR_EACH_BB_FN (block, whole)
        for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at); gsi_next(&at)) {
            rf_check check;
            quiet &= !rf_synchronises(gsi_stmt(at));
            if (rf_check_of(gsi_stmt(at), &check))
                places[check].push_back(gsi_stmt(at));
        }
    unsigned group = 0;
    const rf_terms *last = NULL;
    for (const auto &place : places) {
        const rf_check &check = place.first;
        group += last && *last != check.terms;
        last = &check.terms;
        for (gimple *statement : place.second)
            made[statement] = checks.count();
        checks.add(group, check.offset, check.size, check.write);
    }
}

/* From what was made before the block to what was at its end. */
void repeated::pass(basic_block block, sbitmap now, bool removes)
{
    for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at);) {
        auto found = made.find(gsi_stmt(at));
        if (found == made.end()) {
            if (rf_synchronises(gsi_stmt(at)))
                bitmap_clear(now);
        } else if (removes && checks.covered(found->second, [now](unsigned one) { return bitmap_bit_p(now, one) != 0; })) {
            rf_check_remove(&at);
            continue;
        } else {
            checks.make(found->second, [now](unsigned one) { bitmap_set_bit(now, one); });
        }
        gsi_next(&at);
    }
}

void repeated::meet(basic_block block, sbitmap now) const
{
    edge one;
    edge_iterator i;
    bitmap_ones(now);
    FOR_EACH_EDGE (one, i, block->preds)
        if (one->src == ENTRY_BLOCK_PTR_FOR_FN(whole) || (one->flags & (EDGE_ABNORMAL | EDGE_EH)))
            bitmap_clear(now);
        else
            bitmap_and(now, now, after[one->src->index]);
}

void repeated::remove()
{
    std::vector<int> order(n_basic_blocks_for_fn(whole));
    int count = pre_and_rev_post_order_compute_fn(whole, NULL, order.data(), false);
    after = sbitmap_vector_alloc(last_basic_block_for_fn(whole), checks.count());
    bitmap_vector_ones(after, last_basic_block_for_fn(whole));
    auto_sbitmap now(checks.count());
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < count; i++) {
            basic_block block = BASIC_BLOCK_FOR_FN(whole, order[i]);
            meet(block, now);
            pass(block, now, false);
            if (!bitmap_equal_p(now, after[block->index])) {
                bitmap_copy(after[block->index], now);
                changed = true;
            }
        }
    }
    for (int i = 0; i < count; i++) {
        basic_block block = BASIC_BLOCK_FOR_FN(whole, order[i]);
        meet(block, now);
        pass(block, now, true);
    }
    sbitmap_vector_free(after);
}

bool rf_remove_repeated(function *function)
{
    repeated all(function);
    all.find();
    if (all.is_worth_it())
        all.remove();
    return all.quiet;
}
