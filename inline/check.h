/* A check: a call of a hook, as clang -fsanitize=thread puts it before an access, and the bytes that it is about. What plugin/ is for gcc.
 *
 * 1. Where the bytes lie is what LLVM's analysis of scalar evolution says of the address, and it has one object for equal values: `base`, and a
 *    constant offset from there. Two checks with the same base lie at a distance that is known.
 * 2. Between two instructions that may synchronise a thread's accesses are all of one epoch: the same happens before each of them, and each
 *    happens before the same. So it does not matter which of them is looked at first, or in the place of an equal one.
 * 3. Nothing here changes a function's blocks. So what was found out about it stays true while checks go and come.
 */
#ifndef RF_INLINE_CHECK_H
#define RF_INLINE_CHECK_H

#include "inline/llvm.h"
#include "plugin/rules.h"

struct rf_check {
    const llvm::SCEV *base;
    int64_t offset, size;
    const llvm::SCEV *length; /* of a range that is not a constant, and then size is 0; else NULL */
    bool write;
    uint64_t align; /* of the address, as far as the hook knows it */
};

/* What is known of the function that is worked on. */
struct rf_known {
    llvm::Function &function;
    llvm::ScalarEvolution &scalars;
    llvm::LoopInfo &loops;
    llvm::DominatorTree &tree;
    llvm::TargetLibraryInfo &library;
};

/* Hooks promise what LLVM cannot see: that they come back, and that they are given addresses, since an access follows. */
void rf_promise_hooks(llvm::Module &module);

/* Is it a check, in address space 0? */
bool rf_check_of(llvm::Instruction *instruction, rf_known &known, rf_check *check);
llvm::Value *rf_check_pointer(const llvm::Instruction *check);

/* The same, of a constant number of bytes. */
bool rf_check_of_few(llvm::Instruction *instruction, rf_known &known, rf_check *check);

/* An expression without its constant part, which is added to *offset. */
const llvm::SCEV *rf_without_constant(const llvm::SCEV *sum, llvm::ScalarEvolution &scalars, int64_t *offset);

/* A call that checks these bytes, at an address that is a multiple of `align`, in the line of an access. */
void rf_check_call(llvm::Instruction *before, llvm::Value *pointer, llvm::Value *size, uint64_t align, bool write,
                   const llvm::DebugLoc &line);

/* May the thread synchronise with another one here, or not come to what follows? */
bool rf_synchronises(const llvm::Instruction *instruction, const rf_known &known);

/* The function does nowhere, and comes back: what calls it from now on need not expect otherwise. */
void rf_function_is_quiet(const llvm::Function *function);

/* The same of lines in one file. */
class rf_debug_lines
{
  public:
    explicit rf_debug_lines(const llvm::DebugLoc &line);
    bool take(const llvm::DebugLoc &line);

  private:
    const llvm::Metadata *file;
    rf_lines lines;
};

/* The passes, one after the other. */
void rf_join_neighbours(rf_known &known);
bool rf_leave_loops(rf_known &known);     /* true: each of them has an end */
bool rf_remove_repeated(rf_known &known); /* true: nothing synchronises */

#endif
