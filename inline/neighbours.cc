/* Checks of bytes that lie side by side become one, where the first of them was: colour[0], colour[1], colour[2] and colour[3].
 *
 * 1. They stand in one block with nothing between that may synchronise, so that all are made if one is, in one epoch (check.h, 2).
 * 2. Of a few lines, so that a report names the right one, or one beside it.
 */
#include <algorithm>
#include <map>

#include "inline/check.h"

using namespace llvm;

struct member {
    rf_check check;
    Instruction *call;
    unsigned order, group;
};

static bool before(const member &one, const member &other)
{
    return std::make_tuple(one.check.write, one.group, one.check.offset, one.order) <
           std::make_tuple(other.check.write, other.group, other.check.offset, other.order);
}

/* The first byte of all lies at a multiple of it. */
static uint64_t alignment(const std::vector<member> &members, size_t first, size_t end)
{
    uint64_t align = 1;
    for (size_t i = first; i < end; i++) {
        uint64_t back = (uint64_t)(members[i].check.offset - members[first].check.offset) | members[i].check.align;
        align = std::max(align, back & -back);
    }
    return align;
}

/* The same, as types promise it, which is enough to guess by: all bits that may be set in the address. */
static uint64_t promised(const SCEV *sum, rf_known &known)
{
    uint64_t bits = 0;
    if (isa<SCEVAddExpr>(sum) || isa<SCEVAddRecExpr>(sum)) {
        for (const SCEV *part : cast<SCEVNAryExpr>(sum)->operands())
            bits |= promised(part, known);
        return bits;
    }
    auto *value = dyn_cast<SCEVUnknown>(sum);
    Type *type = sum->getType();
    if (!value || !type->isPointerTy() || type->isOpaquePointerTy() || !type->getPointerElementType()->isSized())
        return (uint64_t)1 << std::min<uint32_t>(known.scalars.GetMinTrailingZeros(sum), 4);
    const DataLayout &layout = known.function.getParent()->getDataLayout();
    return std::max(value->getValue()->getPointerAlignment(layout), layout.getABITypeAlign(type->getPointerElementType()))
        .value();
}

/* members[first] .. members[end - 1] are the bytes from the offset of the first one on. */
static void join(const std::vector<member> &members, size_t first, size_t end, uint64_t size, rf_known &known)
{
    if (end - first < 2)
        return;
    uint64_t align = alignment(members, first, end);
    uint64_t bits = promised(members[first].check.base, known) | (uint64_t)members[first].check.offset | 16;
    if (!rf_joining_pays(end - first, (int64_t)size, (int64_t)std::max(align, bits & -bits)))
        return;
    const member *earliest = &members[first];
    for (size_t i = first; i < end; i++)
        if (members[i].order < earliest->order)
            earliest = &members[i];
    IRBuilder<> builder(earliest->call);
    Value *pointer = builder.CreatePointerCast(rf_check_pointer(earliest->call), builder.getInt8PtrTy());
    int64_t back = earliest->check.offset - members[first].check.offset;
    if (back)
        pointer = builder.CreateGEP(builder.getInt8Ty(), pointer, builder.getInt64((uint64_t)-back));
    rf_check_call(earliest->call, pointer, builder.getInt64(size), align, earliest->check.write,
                  earliest->call->getDebugLoc());
    for (size_t i = first; i < end; i++)
        members[i].call->eraseFromParent();
}

static void join_all(std::vector<member> &members, rf_known &known)
{
    std::sort(members.begin(), members.end(), before);
    for (size_t first = 0, end; first < members.size(); first = end) {
        const rf_check &check = members[first].check;
        int64_t to = check.offset + check.size;
        rf_debug_lines lines(members[first].call->getDebugLoc());
        for (end = first + 1;
             end < members.size() && members[end].check.write == check.write && members[end].group == members[first].group &&
             members[end].check.offset <= to && lines.take(members[end].call->getDebugLoc());
             end++)
            to = std::max(to, members[end].check.offset + members[end].check.size);
        join(members, first, end, (uint64_t)(to - check.offset), known);
    }
    members.clear();
}

void rf_join_neighbours(rf_known &known)
{
    std::vector<member> members;
    for (BasicBlock &block : known.function) {
        std::map<const SCEV *, unsigned> groups; /* in the order of the text, and not in that of where objects lie */
        unsigned order = 0;
        for (auto at = block.begin(); at != block.end();) {
            member here;
            here.call = &*at++;
            here.order = order++;
            if (rf_check_of_few(here.call, known, &here.check)) {
                here.group = groups.insert({ here.check.base, (unsigned)groups.size() }).first->second;
                members.push_back(here);
            } else if (rf_synchronises(here.call, known)) {
                join_all(members, known); /* removes what lies before `at` */
            }
        }
        join_all(members, known);
    }
}
