/* Checks go whose bytes were checked before, on every way that leads to them, with nothing on it that may synchronise.
 *
 * 1. A check of a write is as good as one of a read, one of more bytes as one of fewer, several as one.
 * 2. That a base is another value in each round of a loop needs no thought. It is made of values, and of how often loops have been gone round;
 *    take the one of these that was the last to change. Its definition, or the head of its loop, dominates all checks of the base:
 *    the way that comes there for the first time has none before it. So what was checked on every way was checked since.
 */
#include <algorithm>
#include <map>

#include "inline/check.h"

using namespace llvm;

#define MOST_BITS 200000000 /* of all blocks together: longer functions stay as they are */

struct place {
    rf_check check;
    unsigned group; /* those with equal bases have one number, in the order of the text */
    Instruction *call;
};

/* Those of a group side by side, by where they begin. */
static bool before(const place &one, const place &other)
{
    return std::make_tuple(one.group, one.check.offset, one.check.size, one.check.write) <
           std::make_tuple(other.group, other.check.offset, other.check.size, other.check.write);
}

class repeated
{
  public:
    explicit repeated(rf_known &known) : known(known)
    {
    }
    void find();
    bool is_worth_it() const
    {
        return !checks.empty() && checks.size() * known.function.size() < MOST_BITS;
    }
    void remove();
    bool quiet = true; /* nothing in it synchronises */

  private:
    int64_t end_of(unsigned which) const
    {
        return checks[which].offset + checks[which].size;
    }
    bool covered(const BitVector &now, unsigned which) const;
    void make(BitVector &now, unsigned which) const;
    void pass(BasicBlock *block, BitVector &now, bool removes);
    void meet(BasicBlock *block, BitVector &now);

    rf_known &known;
    std::vector<rf_check> checks; /* different ones, sorted */
    std::vector<unsigned> group;  /* by check */
    std::vector<int64_t> reach;   /* by check: where the last byte ends of this one, and of all before it in its group */
    DenseMap<Instruction *, unsigned> made;  /* where, and which */
    DenseMap<BasicBlock *, BitVector> after; /* those that were made on all ways to its end */
};

void repeated::find()
{
    std::vector<place> places;
    std::map<std::pair<const SCEV *, const SCEV *>, unsigned> groups;
    for (BasicBlock &block : known.function)
        for (Instruction &instruction : block) {
            place here;
            quiet &= !rf_synchronises(&instruction, known);
            here.call = &instruction;
            if (!rf_check_of(&instruction, known, &here.check))
                continue;
            /* Of a range whose length is not a constant only an equal one is known to be the same. */
            const SCEV *base = here.check.length ? known.scalars.getSCEV(rf_check_pointer(&instruction)) : here.check.base;
            if (here.check.length) {
                here.check.offset = 0;
                here.check.size = 1;
            }
            here.group = groups.insert({ { base, here.check.length }, (unsigned)groups.size() }).first->second;
            places.push_back(here);
        }
    std::stable_sort(places.begin(), places.end(), before);
    for (size_t i = 0; i < places.size(); i++) {
        const place &here = places[i];
        if (!i || before(places[i - 1], here)) {
            bool new_group = !i || places[i - 1].group != here.group;
            int64_t end = here.check.offset + here.check.size;
            checks.push_back(here.check);
            group.push_back(here.group);
            reach.push_back(new_group ? end : std::max(reach.back(), end));
        }
        made[here.call] = (unsigned)checks.size() - 1;
    }
}

/* All bytes of the check were checked in this way, or as written. */
bool repeated::covered(const BitVector &now, unsigned which) const
{
    if (now.test(which))
        return true;
    int64_t done = checks[which].offset, end = end_of(which);
    unsigned from = which;
    while (from > 0 && group[from - 1] == group[which] && reach[from - 1] > done)
        from--;
    for (unsigned other = from;
         other < checks.size() && group[other] == group[which] && checks[other].offset <= done && done < end; other++)
        if (now.test(other) && checks[other].write >= checks[which].write)
            done = std::max(done, end_of(other));
    return done >= end;
}

/* The check, and with it all that it has parts of. */
void repeated::make(BitVector &now, unsigned which) const
{
    unsigned from = which;
    while (from > 0 && group[from - 1] == group[which] && checks[from - 1].offset == checks[which].offset)
        from--;
    for (unsigned part = from; part < checks.size() && group[part] == group[which] && checks[part].offset < end_of(which);
         part++)
        if (end_of(part) <= end_of(which) && checks[part].write <= checks[which].write)
            now.set(part);
}

/* From what was made before the block to what was at its end. */
void repeated::pass(BasicBlock *block, BitVector &now, bool removes)
{
    for (auto at = block->begin(); at != block->end();) {
        Instruction *instruction = &*at++;
        auto found = made.find(instruction);
        if (found == made.end()) {
            if (rf_synchronises(instruction, known))
                now.reset();
            continue;
        }
        if (removes && covered(now, found->second))
            instruction->eraseFromParent();
        make(now, found->second);
    }
}

/* Where a function begins, and where control comes by ways that are not drawn, nothing was made. */
void repeated::meet(BasicBlock *block, BitVector &now)
{
    now.set();
    if (block == &known.function.getEntryBlock() || block->hasAddressTaken() || block->isEHPad())
        now.reset();
    for (BasicBlock *from : predecessors(block)) {
        auto found = after.find(from);
        if (found != after.end())
            now &= found->second;
    }
}

void repeated::remove()
{
    ReversePostOrderTraversal<Function *> order(&known.function); /* what cannot be reached has no part in it */
    BitVector now((unsigned)checks.size());
    for (BasicBlock *block : order)
        after[block] = BitVector((unsigned)checks.size(), true);
    for (bool changed = true; changed;) {
        changed = false;
        for (BasicBlock *block : order) {
            meet(block, now);
            pass(block, now, false);
            if (now != after[block]) {
                after[block] = now;
                changed = true;
            }
        }
    }
    for (BasicBlock *block : order) {
        meet(block, now);
        pass(block, now, true);
    }
}

bool rf_remove_repeated(rf_known &known)
{
    repeated all(known);
    all.find();
    if (all.is_worth_it())
        all.remove();
    return all.quiet;
}
