/* Checks go whose bytes were checked before, on every way that leads to them, with nothing on it that may synchronise.
 *
 * 1. A check of a write is as good as one of a read, one of more bytes as one of fewer, several as one.
 * 2. That a value which is defined anew in each round of a loop is another one each time needs no thought: the way that comes to its definition
 *    for the first time has no check of it.
 */
#include <map>

#include "plugin/check.h"

#define MOST_BITS 200000000 /* of all blocks together: longer functions stay as they are */

class repeated
{
  public:
    explicit repeated(function *whole) : whole(whole)
    {
    }
    void find();
    bool is_worth_it() const
    {
        return !checks.empty() && checks.size() * last_basic_block_for_fn(whole) < MOST_BITS;
    }
    void remove();
    bool quiet = true; /* nothing in it synchronises */

  private:
    bool covered(sbitmap now, unsigned which) const;
    void pass(basic_block block, sbitmap now, bool removes);
    void meet(basic_block block, sbitmap now) const;

    function *whole;
    std::vector<rf_check> checks;            /* different ones */
    std::vector<std::vector<unsigned>> same; /* those with equal terms, by check */
    std::map<gimple *, unsigned> made;       /* where, and which */
    sbitmap *after;                          /* by block: those that were made on all ways to its end */
};

void repeated::find()
{
    std::map<rf_terms, std::vector<unsigned>> by_terms;
    basic_block block;
    FOR_EACH_BB_FN(block, whole)
    for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at); gsi_next(&at)) {
        rf_check check;
        quiet &= !rf_synchronises(gsi_stmt(at));
        if (!rf_check_of(gsi_stmt(at), &check))
            continue;
        std::vector<unsigned> &equal = by_terms[check.terms];
        unsigned which = checks.size();
        for (unsigned other : equal)
            if (checks[other].offset == check.offset && checks[other].size == check.size &&
                checks[other].write == check.write)
                which = other;
        if (which == checks.size()) {
            checks.push_back(check);
            equal.push_back(which);
        }
        made[gsi_stmt(at)] = which;
    }
    for (const rf_check &check : checks)
        same.push_back(by_terms[check.terms]);
}

bool repeated::covered(sbitmap now, unsigned which) const
{
    if (bitmap_bit_p(now, which))
        return true;
    const rf_check &check = checks[which];
    HOST_WIDE_INT done = check.offset, end = check.offset + check.size;
    for (bool more = true; more && done < end;) {
        more = false;
        for (unsigned other : same[which]) {
            const rf_check &had = checks[other];
            if (bitmap_bit_p(now, other) && had.write >= check.write && had.offset <= done && had.offset + had.size > done) {
                done = had.offset + had.size;
                more = true;
            }
        }
    }
    return done >= end;
}

/* From what was made before the block to what was at its end. */
void repeated::pass(basic_block block, sbitmap now, bool removes)
{
    for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at);) {
        auto found = made.find(gsi_stmt(at));
        if (found == made.end()) {
            if (rf_synchronises(gsi_stmt(at)))
                bitmap_clear(now);
        } else if (removes && covered(now, found->second)) {
            rf_check_remove(&at);
            continue;
        } else {
            const rf_check &check = checks[found->second];
            for (unsigned other : same[found->second]) {
                const rf_check &part = checks[other];
                if (part.offset >= check.offset && part.offset + part.size <= check.offset + check.size &&
                    part.write <= check.write)
                    bitmap_set_bit(now, other);
            }
        }
        gsi_next(&at);
    }
}

void repeated::meet(basic_block block, sbitmap now) const
{
    edge one;
    edge_iterator i;
    bitmap_ones(now);
    FOR_EACH_EDGE(one, i, block->preds)
    if (one->src == ENTRY_BLOCK_PTR_FOR_FN(whole) || (one->flags & (EDGE_ABNORMAL | EDGE_EH)))
        bitmap_clear(now);
    else
        bitmap_and(now, now, after[one->src->index]);
}

void repeated::remove()
{
    std::vector<int> order(n_basic_blocks_for_fn(whole));
    int count = pre_and_rev_post_order_compute_fn(whole, NULL, order.data(), false);
    after = sbitmap_vector_alloc(last_basic_block_for_fn(whole), checks.size());
    bitmap_vector_ones(after, last_basic_block_for_fn(whole));
    auto_sbitmap now(checks.size());
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

void rf_remove_repeated(function *function)
{
    repeated all(function);
    all.find();
    if (all.is_worth_it())
        all.remove();
    if (all.quiet)
        rf_function_is_quiet(function->decl);
}
