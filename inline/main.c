/* redflag-inline [--every-access] HOOKS FILE: puts the hooks of one file of bitcode (guest/inline/hooks.c) into another, which
 * clang -fsanitize=thread has made and optimised, in place. Before that it removes checks that find nothing which others do not find (fewer.cc),
 * unless told otherwise. `redflag cc --inline` runs it between two runs of clang: the first one ends with the calls of
 * hooks, and has no pass behind them that would inline; the second one makes code. A program of its own for the reason of static/main.c.
 * With - for HOOKS, as tests have it, hooks stay calls.
 *
 * 1. Hooks are inlined wherever they are called, nothing else is: a function with hooks asks for its own return address, so that it
 *    must stay a function.
 * 2. What is inlined has the line of the call: the hooks have no lines of their own.
 * 3. No definition of a hook is left. Calls that were not inlined are those of the runtime, as without all this.
 */
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "inline/fewer.h"

#define WHO "redflag cc --inline"
#define PREFETCH "rf_inline_prefetch"

/* The calls go; then what two checks of a function have in common is computed once: where the plane and the thread are. */
static const char passes[] = "always-inline,globaldce,function(early-cse<memssa>,instcombine,simplifycfg,loop-mssa(licm))";

static bool failed; /* LLVM has said something that is an error */

static void heard(LLVMDiagnosticInfoRef info, void *context)
{
    (void)context;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    fprintf(stderr, WHO ": LLVM: %s\n", text);
    LLVMDisposeMessage(text);
    failed = true;
}

static LLVMModuleRef read_module(LLVMContextRef context, const char *path)
{
    LLVMMemoryBufferRef buffer;
    LLVMModuleRef module;
    char *error = NULL;
    if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &error)) {
        fprintf(stderr, WHO ": %s: %s\n", path, error);
        LLVMDisposeMessage(error);
        return NULL;
    }
    int bad = LLVMParseBitcodeInContext2(context, buffer, &module);
    LLVMDisposeMemoryBuffer(buffer);
    if (!bad && !failed)
        return module;
    fprintf(stderr, WHO ": %s is no bitcode that LLVM %d reads: is clang of another version?\n", path, LLVM_VERSION_MAJOR);
    return NULL;
}

/* Copies of a size that is known were made calls by clang's instrumentation, which the runtime looks at: no pass may make moves of them
 * again, which nobody would. */
static void keep_calls(LLVMModuleRef program)
{
    static const char *const names[] = { "memcpy", "memmove", "memset" };
    static const char attribute[] = "nobuiltin";
    LLVMAttributeRef kept = LLVMCreateEnumAttribute(LLVMGetModuleContext(program),
                                                    LLVMGetEnumAttributeKindForName(attribute, strlen(attribute)), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        LLVMValueRef function = LLVMGetNamedFunction(program, names[i]);
        for (LLVMUseRef use = function ? LLVMGetFirstUse(function) : NULL; use; use = LLVMGetNextUse(use)) {
            LLVMValueRef call = LLVMGetUser(use);
            if ((LLVMIsACallInst(call) || LLVMIsAInvokeInst(call)) && LLVMGetCalledValue(call) == function)
                LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kept);
        }
    }
}

/* The hooks are compiled for any processor and any kind of frame; they become part of functions that know theirs. */
static void forget_target(LLVMValueRef hook)
{
    static const char *const attributes[] = { "target-cpu",
                                              "target-features",
                                              "tune-cpu",
                                              "frame-pointer",
                                              "min-legal-vector-width",
                                              "no-trapping-math",
                                              "stack-protector-buffer-size" };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        LLVMRemoveStringAttributeAtIndex(hook, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attributes[i],
                                         (unsigned)strlen(attributes[i]));
}

/* The history of what the program prefetches is prefetched. */
static void call_at_prefetches(LLVMModuleRef program, LLVMModuleRef hooks)
{
    LLVMContextRef context = LLVMGetModuleContext(program);
    LLVMValueRef prefetch = LLVMGetNamedFunction(program, "llvm.prefetch.p0i8");
    if (!prefetch || !LLVMGetNamedFunction(hooks, PREFETCH))
        return;
    LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(LLVMGetNamedFunction(hooks, PREFETCH)));
    LLVMValueRef ours = LLVMAddFunction(program, PREFETCH, type);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    for (LLVMUseRef use = LLVMGetFirstUse(prefetch); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef call = LLVMGetUser(use), address;
        if (!LLVMIsACallInst(call) || LLVMGetCalledValue(call) != prefetch)
            continue;
        address = LLVMGetOperand(call, 0);
        LLVMPositionBuilderBefore(builder, call);
        LLVMBuildCall2(builder, type, ours, &address, 1, "");
    }
    LLVMDisposeBuilder(builder);
}

/* A cold hook gives back every register. The dynamic linker, at a call that it binds late, does not: r10 is lost. So the call goes through
 * a slot of the global offset table, which is bound when the program starts. */
static void bind_early(LLVMValueRef function)
{
    static const char name[] = "nonlazybind";
    LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(context, kind, 0));
}

/* Leaves only hooks that the program calls, and those to it alone. */
static bool add_hooks(LLVMModuleRef program, LLVMModuleRef hooks)
{
    LLVMSetTarget(hooks, LLVMGetTarget(program));
    call_at_prefetches(program, hooks);
    LLVMSetDataLayout(hooks, LLVMGetDataLayoutStr(program));
    char *names[64];
    size_t count = 0;
    for (LLVMValueRef hook = LLVMGetFirstFunction(hooks), next; hook; hook = next) {
        next = LLVMGetNextFunction(hook);
        if (LLVMIsDeclaration(hook)) {
            if (!LLVMGetIntrinsicID(hook))
                bind_early(hook);
            continue;
        }
        size_t length;
        const char *name = LLVMGetValueName2(hook, &length);
        LLVMValueRef called = LLVMGetNamedFunction(program, name);
        if (!called || !LLVMIsDeclaration(called)) {
            LLVMDeleteFunction(hook);
        } else if (count < sizeof names / sizeof *names) {
            forget_target(hook);
            names[count++] = LLVMCreateMessage(name);
        }
    }
    if (LLVMLinkModules2(program, hooks))
        return false;
    for (size_t i = 0; i < count; i++) {
        LLVMSetLinkage(LLVMGetNamedFunction(program, names[i]), LLVMInternalLinkage);
        LLVMDisposeMessage(names[i]);
    }
    return true;
}

static bool inline_hooks(LLVMModuleRef module)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, passes, NULL, options);
    LLVMDisposePassBuilderOptions(options);
    if (error)
        fprintf(stderr, WHO ": LLVM: %s\n", LLVMGetErrorMessage(error));
    return !error;
}

int main(int argc, char **argv)
{
    bool every_access = argc > 1 && !strcmp(argv[1], "--every-access");
    if (argc != 3 + every_access) {
        fputs("usage: redflag-inline [--every-access] HOOKS FILE: `redflag cc --inline` runs it\n", stderr);
        return 2;
    }
    const char *path = argv[argc - 2], *file = argv[argc - 1];
    bool has_hooks = strcmp(path, "-") != 0;
    LLVMContextRef context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(context, heard, NULL);
    LLVMModuleRef hooks = has_hooks ? read_module(context, path) : NULL;
    LLVMModuleRef program = hooks || !has_hooks ? read_module(context, file) : NULL;
    if (!program)
        return 2;
    keep_calls(program);
    if (!every_access)
        rf_fewer_checks(program);
    if (has_hooks && (!add_hooks(program, hooks) || failed || !inline_hooks(program)))
        return 2;
    if (LLVMWriteBitcodeToFile(program, file) != 0) {
        fprintf(stderr, WHO ": %s cannot be written\n", file);
        return 2;
    }
    return 0;
}
