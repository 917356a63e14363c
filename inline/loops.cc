/* Checks leave loops that cannot synchronise: those of neighbouring bytes, one after the other, as that of all of them, before the loop; those of
 * the same bytes, as one.
 *
 * 1. A check leaves if it is made in every round, or in every round but the last; one of the same bytes if it is made in the first one. How
 *    often the loop is gone round must be known when it begins, but for the same bytes.
 * 2. What the loop is about to access is looked at before: nothing in it synchronises, so all of it is of one epoch (check.h, 2). It comes to
 *    these accesses: each loop in it has an end, and what is called comes back.
 * 3. What leaves an inner loop is a check of the outer one, which it may leave, too.
 */
#include <algorithm>
#include <map>

#include "inline/check.h"

using namespace llvm;

/* What is known of a loop. */
struct surroundings {
    Loop *loop;
    BasicBlock *before, *latch;
    SmallVector<BasicBlock *, 4> leaves; /* blocks that lead out of it */
    const SCEV *rounds; /* how often its end leads to its beginning; NULL: not known, or there are several ways out */
};

/* A check whose bytes move by a constant in each round. */
struct moving {
    rf_check check; /* its base moves, and so has the loop's own part in it */
    const SCEVAddRecExpr *moves;
    int64_t step;
    bool once_more; /* made once more than the loop's end leads back, or as often: in the latter case perhaps never */
    Instruction *call;
    unsigned order, group;
};

class leaving
{
  public:
    leaving(rf_known &known, surroundings &around)
        : known(known), around(around), expander(known.scalars, known.function.getParent()->getDataLayout(), "check")
    {
    }
    void leave();

  private:
    bool is_made(BasicBlock *block) const;
    bool same(Instruction *call, const rf_check &check);
    bool in_rows(Instruction *call, const rf_check &check);
    void note_moving(Instruction *call, const rf_check &check);
    void leave_moving(void);
    bool leave_together(size_t first, size_t end, int64_t size);
    bool put(const SCEV *pointer, const SCEV *size, uint64_t align, const rf_check &check, const DebugLoc &line);
    const SCEV *number(uint64_t value)
    {
        return known.scalars.getConstant(APInt(64, value));
    }

    rf_known &known;
    surroundings &around;
    SCEVExpander expander;
    std::vector<moving> all;
    std::map<std::pair<const SCEV *, bool>, unsigned> groups;
};

/* In the first round, and in every one that is not left before its end. */
bool leaving::is_made(BasicBlock *block) const
{
    for (BasicBlock *leaves : around.leaves)
        if (!known.tree.dominates(block, leaves))
            return false;
    return known.tree.dominates(block, around.latch);
}

bool leaving::put(const SCEV *pointer, const SCEV *size, uint64_t align, const rf_check &check, const DebugLoc &line)
{
    Instruction *at = around.before->getTerminator();
    if (!isSafeToExpandAt(pointer, at, known.scalars) || !isSafeToExpandAt(size, at, known.scalars))
        return false;
    Type *address = Type::getInt8PtrTy(at->getContext());
    Value *from = expander.expandCodeFor(pointer, address, at), *bytes = expander.expandCodeFor(size, size->getType(), at);
    rf_check_call(at, from, bytes, align, check.write, line);
    return true;
}

/* The same bytes in each round. */
bool leaving::same(Instruction *call, const rf_check &check)
{
    const SCEV *pointer = known.scalars.getSCEV(rf_check_pointer(call));
    const SCEV *size = check.length ? check.length : number((uint64_t)check.size);
    return is_made(call->getParent()) && known.scalars.isLoopInvariant(pointer, around.loop) &&
           known.scalars.isLoopInvariant(size, around.loop) && put(pointer, size, check.align, check, call->getDebugLoc());
}

/* Ranges that follow each other, as rows of a matrix do: each ends where the next one begins. */
bool leaving::in_rows(Instruction *call, const rf_check &check)
{
    ScalarEvolution &scalars = known.scalars;
    auto *moves = dyn_cast<SCEVAddRecExpr>(scalars.getSCEV(rf_check_pointer(call)));
    if (!check.length || !moves || moves->getLoop() != around.loop || !moves->isAffine() ||
        !scalars.isLoopInvariant(check.length, around.loop) || moves->getStepRecurrence(scalars) != check.length ||
        !is_made(call->getParent()))
        return false;
    const SCEV *times = scalars.getAddExpr(around.rounds, number(1));
    return put(moves->getStart(), scalars.getMulExpr(times, check.length), 1, check, call->getDebugLoc());
}

void leaving::note_moving(Instruction *call, const rf_check &check)
{
    moving here = { check, dyn_cast<SCEVAddRecExpr>(known.scalars.getSCEV(rf_check_pointer(call))),
                    0,     is_made(call->getParent()),
                    call,  (unsigned)all.size(),
                    0 };
    if (check.length || !here.moves || here.moves->getLoop() != around.loop || !here.moves->isAffine() ||
        !known.tree.dominates(call->getParent(), around.latch))
        return;
    auto *step = dyn_cast<SCEVConstant>(here.moves->getStepRecurrence(known.scalars));
    if (!step || step->getAPInt().getMinSignedBits() > 32)
        return;
    here.step = step->getAPInt().getSExtValue();
    here.group = groups.insert({ { check.base, here.once_more }, (unsigned)groups.size() }).first->second;
    all.push_back(here);
}

/* all[first] .. all[end - 1] are, in each round, so many bytes from the offset of the first one on. */
bool leaving::leave_together(size_t first, size_t end, int64_t size)
{
    const moving &one = all[first];
    uint64_t step = (uint64_t)std::abs(one.step);
    if (step > (uint64_t)size || (!one.once_more && step != (uint64_t)size))
        return false;
    ScalarEvolution &scalars = known.scalars;
    const SCEV *start = one.moves->getStart();
    const SCEV *steps = one.once_more ? around.rounds : scalars.getMinusSCEV(around.rounds, number(1));
    const SCEV *way = scalars.getMulExpr(steps, number(step));
    if (one.step < 0)
        start = scalars.getAddExpr(start, scalars.getNegativeSCEV(way));
    const moving *earliest = &one;
    for (size_t i = first; i < end; i++)
        if (all[i].order < earliest->order)
            earliest = &all[i];
    if (!put(start, scalars.getAddExpr(way, number((uint64_t)size)), 1, one.check, earliest->call->getDebugLoc()))
        return false;
    for (size_t i = first; i < end; i++)
        all[i].call->eraseFromParent();
    return true;
}

/* What one check does not fill, several may: the parts of an unrolled loop, the fields of an element. */
void leaving::leave_moving(void)
{
    std::sort(all.begin(), all.end(), [](const moving &one, const moving &other) {
        return std::make_tuple(one.check.write, one.group, one.check.offset, one.order) <
               std::make_tuple(other.check.write, other.group, other.check.offset, other.order);
    });
    for (size_t first = 0, end; first < all.size(); first = end) {
        const moving &one = all[first];
        int64_t to = one.check.offset + one.check.size;
        rf_debug_lines lines(one.call->getDebugLoc());
        for (end = first + 1; end < all.size() && all[end].check.write == one.check.write && all[end].group == one.group &&
                              all[end].check.offset <= to && lines.take(all[end].call->getDebugLoc());
             end++)
            to = std::max(to, all[end].check.offset + all[end].check.size);
        leave_together(first, end, to - one.check.offset);
    }
}

void leaving::leave()
{
    LoopBlocksRPO order(around.loop);
    order.perform(&known.loops);
    for (BasicBlock *block : order)
        for (auto at = block->begin(); at != block->end();) {
            Instruction *instruction = &*at++;
            rf_check check;
            if (!rf_check_of(instruction, known, &check))
                continue;
            if (same(instruction, check) || (around.rounds && in_rows(instruction, check)))
                instruction->eraseFromParent();
            else if (around.rounds)
                note_moving(instruction, check);
        }
    leave_moving();
}

/* -- loops ---------------------------------------------------------------------------------------------------------------------- */

/* What a loop says of itself is not asked: where two have become one it may be true of only the other, and C has loops that need not end. */
static bool ends(Loop *loop, rf_known &known)
{
    return known.function.mustProgress() || !isa<SCEVCouldNotCompute>(known.scalars.getBackedgeTakenCount(loop));
}

/* Something in it may synchronise, or keep the thread for ever; that the loop itself may is no reason. */
static bool may_synchronise(Loop *loop, rf_known &known)
{
    for (Loop *inner : loop->getSubLoops())
        for (Loop *each : inner->getLoopsInPreorder())
            if (!ends(each, known))
                return true;
    for (BasicBlock *block : loop->blocks())
        for (Instruction &instruction : *block)
            if (rf_synchronises(&instruction, known))
                return true;
    return false;
}

static bool look_around(surroundings *around, rf_known &known)
{
    Loop *loop = around->loop;
    around->before = loop->getLoopPreheader();
    around->latch = loop->getLoopLatch();
    if (!around->before || !around->latch || may_synchronise(loop, known))
        return false;
    loop->getExitingBlocks(around->leaves);
    around->rounds = nullptr;
    const SCEV *rounds = known.scalars.getBackedgeTakenCount(loop);
    if (around->leaves.size() == 1 && !isa<SCEVCouldNotCompute>(rounds) && rounds->getType()->isIntegerTy() &&
        known.scalars.getTypeSizeInBits(rounds->getType()) <= 64)
        around->rounds = known.scalars.getNoopOrZeroExtend(rounds, Type::getInt64Ty(known.function.getContext()));
    return true;
}

bool rf_leave_loops(rf_known &known)
{
    bool end = true;
    SmallVector<Loop *, 4> order = known.loops.getLoopsInPreorder();
    for (auto at = order.rbegin(); at != order.rend(); ++at) { /* inner ones first */
        surroundings around;
        around.loop = *at;
        end &= ends(*at, known);
        if (look_around(&around, known))
            leaving(known, around).leave();
    }
    return end;
}
