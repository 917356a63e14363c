#include "inline/check.h"

#include <set>

using namespace llvm;

/* -- addresses ------------------------------------------------------------------------------------------------------------------ */

const SCEV *rf_without_constant(const SCEV *sum, ScalarEvolution &scalars, int64_t *offset)
{
    if (auto *add = dyn_cast<SCEVAddExpr>(sum)) {
        auto *constant = dyn_cast<SCEVConstant>(add->getOperand(0)); /* it comes first, if there is one */
        if (!constant || constant->getAPInt().getBitWidth() != 64)
            return sum;
        *offset = (int64_t)((uint64_t)*offset + constant->getAPInt().getZExtValue());
        SmallVector<const SCEV *, 4> rest(add->op_begin() + 1, add->op_end());
        return scalars.getAddExpr(rest);
    }
    if (auto *moves = dyn_cast<SCEVAddRecExpr>(sum)) {
        SmallVector<const SCEV *, 4> parts(moves->op_begin(), moves->op_end());
        const SCEV *start = rf_without_constant(parts[0], scalars, offset);
        if (start == parts[0])
            return sum;
        parts[0] = start;
        return scalars.getAddRecExpr(parts, moves->getLoop(), SCEV::FlagAnyWrap);
    }
    return sum;
}

/* -- checks --------------------------------------------------------------------------------------------------------------------- */

#define LARGEST ((uint64_t)1 << 40) /* nobody has as much: the loop is never run */
#define ALIGNED 8                   /* is enough for 16 bytes, too */

/* What a hook's name says. */
struct named {
    uint64_t size; /* 0: the second argument does */
    bool write, unaligned;
};

static bool is_hook(StringRef name, struct named *named)
{
    if (!name.consume_front("__tsan_"))
        return false;
    named->unaligned = name.consume_front("unaligned_");
    named->write = name.startswith("write");
    if (!name.consume_front("read") && !name.consume_front("write"))
        return false;
    if (name == "_range" && !named->unaligned) {
        named->size = 0;
        return true;
    }
    return !name.getAsInteger(10, named->size) && named->size <= 16 && isPowerOf2_64(named->size);
}

/* NULL: it calls nothing, or what is not known. */
static const Function *called(const Instruction *instruction)
{
    auto *call = dyn_cast<CallBase>(instruction);
    return call ? call->getCalledFunction() : nullptr;
}

static bool is_check(const Instruction *instruction, struct named *named)
{
    const Function *function = isa<CallInst>(instruction) ? called(instruction) : nullptr;
    if (!function || !function->isDeclaration() || !is_hook(function->getName(), named))
        return false;
    auto *call = cast<CallInst>(instruction);
    return call->arg_size() == (named->size ? 1 : 2) && call->getArgOperand(0)->getType()->isPointerTy() &&
           call->getArgOperand(0)->getType()->getPointerAddressSpace() == 0;
}

Value *rf_check_pointer(const Instruction *check)
{
    return cast<CallInst>(check)->getArgOperand(0);
}

bool rf_check_of(Instruction *instruction, rf_known &known, rf_check *check)
{
    struct named named;
    if (!is_check(instruction, &named))
        return false;
    check->length = nullptr;
    if (!named.size) {
        Value *size = cast<CallInst>(instruction)->getArgOperand(1);
        auto *constant = dyn_cast<ConstantInt>(size);
        if (!size->getType()->isIntegerTy(64))
            return false;
        if (constant && (constant->isZero() || constant->getZExtValue() > LARGEST))
            return false;
        named.size = constant ? constant->getZExtValue() : 0;
        named.unaligned = true;
        check->length = constant ? nullptr : known.scalars.getSCEV(size);
    }
    check->size = (int64_t)named.size;
    check->write = named.write;
    check->align = named.unaligned ? 1 : std::min<uint64_t>(named.size, ALIGNED);
    check->offset = 0;
    check->base = rf_without_constant(known.scalars.getSCEV(rf_check_pointer(instruction)), known.scalars, &check->offset);
    return true;
}

bool rf_check_of_few(Instruction *instruction, rf_known &known, rf_check *check)
{
    return rf_check_of(instruction, known, check) && !check->length;
}

static void promise(Function &hook)
{
    hook.setDoesNotThrow();
    hook.setWillReturn();
}

static bool only_tells(StringRef name)
{
    return name.startswith("__tsan_read") || name.startswith("__tsan_write") || name.startswith("__tsan_unaligned_") ||
           name.startswith("__tsan_func_") || name.startswith("__tsan_vptr_");
}

void rf_promise_hooks(Module &module)
{
    struct named named;
    for (Function &function : module) {
        if (!function.isDeclaration() || !only_tells(function.getName()))
            continue;
        promise(function);
        if (is_hook(function.getName(), &named) && named.size && function.arg_size() >= 1) /* ranges may have none */
            function.addParamAttr(0, Attribute::NoUndef);
    }
}

void rf_check_call(Instruction *before, Value *pointer, Value *size, uint64_t align, bool write, const DebugLoc &line)
{
    Module *module = before->getModule();
    IRBuilder<> builder(before);
    builder.SetCurrentDebugLocation(line);
    auto *constant = dyn_cast<ConstantInt>(size);
    uint64_t bytes = constant ? constant->getZExtValue() : 0;
    bool has_hook = isPowerOf2_64(bytes) && bytes <= 16;
    std::string name = "__tsan_";
    if (has_hook && align < std::min<uint64_t>(bytes, ALIGNED))
        name += "unaligned_";
    name += write ? "write" : "read";
    name += has_hook ? std::to_string(bytes) : "_range";
    Type *address = builder.getInt8PtrTy();
    SmallVector<Type *, 2> types = { address };
    SmallVector<Value *, 2> values = { builder.CreatePointerCast(pointer, address) };
    if (!has_hook) {
        types.push_back(builder.getInt64Ty());
        values.push_back(size);
    }
    FunctionCallee hook = module->getOrInsertFunction(name, FunctionType::get(builder.getVoidTy(), types, false));
    if (auto *function = dyn_cast<Function>(hook.getCallee()))
        promise(*function);
    builder.CreateCall(hook, values)->setDoesNotThrow();
}

/* -- who synchronises ----------------------------------------------------------------------------------------------------------- */

static std::set<const Function *> quiet;

void rf_function_is_quiet(const Function *function)
{
    if (function->hasExactDefinition() &&
        (function->hasLocalLinkage() || function->isDSOLocal())) /* else another one of the name may be called */
        quiet.insert(function);
}

/* Functions of the language that neither synchronise nor call what might. */
static bool is_harmless(const CallBase *call, const Function *function, const rf_known &known)
{
    LibFunc which;
    if (!known.library.getLibFunc(*function, which) || !known.library.has(which))
        return false;
    switch (which) {
    case LibFunc_memcpy:
    case LibFunc_memmove:
    case LibFunc_memset:
        return true;
    default:
        return call->onlyReadsMemory() && call->doesNotThrow() && call->hasFnAttr(Attribute::WillReturn);
    }
}

static bool call_synchronises(const CallBase *call, const rf_known &known)
{
    if (!isa<CallInst>(call)) /* an invoke: it may throw */
        return true;
    if (auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand()))
        return assembly->hasSideEffects() || !call->doesNotAccessMemory();
    const Function *function = call->getCalledFunction();
    if (!function || call->hasFnAttr(Attribute::ReturnsTwice))
        return true;
    if (function->isIntrinsic()) {
        auto *copies = dyn_cast<MemIntrinsic>(call);
        if (copies || function->getIntrinsicID() == Intrinsic::prefetch)
            return copies && copies->isVolatile();
        return isa<AtomicMemIntrinsic>(call) || !(call->hasFnAttr(Attribute::NoSync) || call->doesNotAccessMemory()) ||
               !call->hasFnAttr(Attribute::WillReturn) || !call->doesNotThrow();
    }
    if (!function->isDeclaration())
        return !quiet.count(function);
    return !only_tells(function->getName()) && !is_harmless(call, function, known);
}

bool rf_synchronises(const Instruction *instruction, const rf_known &known)
{
    if (auto *call = dyn_cast<CallBase>(instruction))
        return call_synchronises(call, known);
    return instruction->isVolatile() || instruction->isAtomic() || isa<FenceInst>(instruction) || instruction->isEHPad() ||
           isa<IndirectBrInst>(instruction) || isa<ResumeInst>(instruction) ||
           (instruction->isTerminator() && instruction->isExceptionalTerminator());
}

/* -- lines ---------------------------------------------------------------------------------------------------------------------- */

static const Metadata *file_of(const DebugLoc &line)
{
    return line ? line->getFile() : nullptr;
}

static int line_of(const DebugLoc &line)
{
    return line ? (int)line.getLine() : 0;
}

rf_debug_lines::rf_debug_lines(const DebugLoc &line) : file(file_of(line)), lines(line_of(line))
{
}

bool rf_debug_lines::take(const DebugLoc &line)
{
    return file == file_of(line) && lines.take(line_of(line));
}
