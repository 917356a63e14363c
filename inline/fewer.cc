/* The passes over a module: callees before their callers, so that what is called is known to be quiet, or not.
 *
 * 1. Of functions that call each other none is quiet: they might never come back.
 * 2. A function that may return twice, as from setjmp(), stays as it is, and so does one that is not to be optimised.
 */
#include "inline/fewer.h"

#include "inline/check.h"

using namespace llvm;

/* Loops are what LLVM knows of them: cycles that begin in two places are not. */
static bool has_other_cycles(Function &function, LoopInfo &loops)
{
    ReversePostOrderTraversal<Function *> order(&function);
    return containsIrreducibleCFG<BasicBlock *>(order, loops);
}

static void work_on(Function &function, FunctionAnalysisManager &manager)
{
    if (function.hasOptNone() || function.callsFunctionThatReturnsTwice() || function.isPresplitCoroutine())
        return;
    PreservedAnalyses kept = LoopSimplifyPass().run(function, manager); /* a block before each loop */
    manager.invalidate(function, kept);
    rf_known known = { function, manager.getResult<ScalarEvolutionAnalysis>(function),
                       manager.getResult<LoopAnalysis>(function), manager.getResult<DominatorTreeAnalysis>(function),
                       manager.getResult<TargetLibraryAnalysis>(function) };
    rf_join_neighbours(known);
    bool ends = !has_other_cycles(function, known.loops) && rf_leave_loops(known);
    if (rf_remove_repeated(known) && ends)
        rf_function_is_quiet(&function);
    manager.clear(function, function.getName());
}

void rf_fewer_checks(LLVMModuleRef handle)
{
    Module &module = *unwrap(handle);
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager components;
    ModuleAnalysisManager modules;
    PassBuilder builder;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    rf_promise_hooks(module);
    CallGraph graph(module);
    for (auto component = scc_begin(&graph); !component.isAtEnd(); ++component)
        for (CallGraphNode *node : *component)
            if (Function *function = node->getFunction())
                if (!function->isDeclaration())
                    work_on(*function, functions);
}
