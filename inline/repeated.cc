/* Checks go whose bytes were checked before, on every way that leads to them, with nothing on it that may synchronise.
 *
 * 1. That a base is another value in each round of a loop needs no thought. It is made of values, and of how often loops have been gone round;
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
        return checks.count() && checks.count() * known.function.size() < MOST_BITS;
    }
    void remove();
    bool quiet = true; /* nothing in it synchronises */

  private:
    void pass(BasicBlock *block, BitVector &now, bool removes);
    void meet(BasicBlock *block, BitVector &now);

    rf_known &known;
    rf_covers checks;
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
        if (!i || before(places[i - 1], here))
            checks.add(here.group, here.check.offset, here.check.size, here.check.write);
        made[here.call] = checks.count() - 1;
    }
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
        if (removes && checks.covered(found->second, [&now](unsigned one) { return now.test(one); }))
            instruction->eraseFromParent();
        checks.make(found->second, [&now](unsigned one) { now.set(one); });
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
    BitVector now(checks.count());
    for (BasicBlock *block : order)
        after[block] = BitVector(checks.count(), true);
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
