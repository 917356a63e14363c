/* Functions that return new memory and do nothing else with it (static/program.h, 4): xmalloc(), zcalloc() and their like. If all that
 * they return were one object, everything that a program allocates through one of them would be.
 *
 * 1. What such a function returns is, through casts, choices and joins of control flow: what a function that makes memory returned, one of
 *    its parameters, or nothing (NULL).
 * 2. What is new is used for nothing else, but to compare it. So nobody knows of it before the caller does, and nothing is accessed: that
 *    the caller's memory is an object of the call, and not the one that the function's own instruction made, hides no access.
 * 3. realloc() returns its argument, or new memory with the same content. It must have been given a parameter, or nothing.
 */
#include <string.h>

#include "static/program.h"

#define MOST 64u /* values that may be returned; and parameters */

struct returned {
    LLVMValueRef values[MOST];
    unsigned count;
    uint64_t parameters; /* those that are among them */
    bool makes;
};

static bool add(struct returned *set, LLVMValueRef value)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->values[i] == value)
            return true;
    if (set->count == MOST)
        return false;
    set->values[set->count++] = value;
    return true;
}

static bool is_nothing(LLVMValueRef value)
{
    return LLVMIsConstant(value) && (LLVMIsNull(value) || LLVMIsUndef(value));
}

static bool add_parameter(struct returned *set, LLVMValueRef function, LLVMValueRef value)
{
    for (unsigned i = 0; i < LLVMCountParams(function) && i < MOST; i++)
        if (LLVMGetParam(function, i) == value) {
            set->parameters |= UINT64_C(1) << i;
            return true;
        }
    return is_nothing(value);
}

/* A call that makes memory. What it may return besides must be a parameter of the function that it is in. */
static bool makes_memory(const struct rf_program_ir *program, struct returned *set, LLVMValueRef function, LLVMValueRef call)
{
    LLVMValueRef callee = LLVMGetCalledValue(call);
    if (!LLVMIsAFunction(callee))
        return false;
    uint32_t number = rf_program_function(program, callee);
    uint64_t through = 0; /* parameters of the callee that may come back */
    if (number == UINT32_MAX)
        return false;
    if (program->functions[number].has_body) {
        if (!program->functions[number].wraps)
            return false;
        through = program->functions[number].wrapped;
    } else {
        size_t length;
        const char *name = LLVMGetValueName2(callee, &length);
        if (!rf_program_makes_memory(name))
            return false;
        through = strstr(name, "realloc") ? 1 : 0;
    }
    set->makes = true;
    for (unsigned i = 0; i < LLVMGetNumArgOperands(call) && i < MOST; i++)
        if (through >> i & 1 && !add_parameter(set, function, LLVMGetOperand(call, i)))
            return false;
    return true;
}

/* Looks at one of the values: where it comes from goes into the set. */
static bool comes_from(const struct rf_program_ir *program, struct returned *set, LLVMValueRef function, LLVMValueRef value)
{
    if (is_nothing(value))
        return true;
    if (LLVMIsAArgument(value))
        return add_parameter(set, function, value);
    if (!LLVMIsAInstruction(value))
        return false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMBitCast:
        return add(set, LLVMGetOperand(value, 0));
    case LLVMSelect:
        return add(set, LLVMGetOperand(value, 1)) && add(set, LLVMGetOperand(value, 2));
    case LLVMPHI:
        for (unsigned i = 0; i < LLVMCountIncoming(value); i++)
            if (!add(set, LLVMGetIncomingValue(value, i)))
                return false;
        return true;
    case LLVMCall:
    case LLVMInvoke:
        return makes_memory(program, set, function, value);
    default:
        return false;
    }
}

/* Invariant 2. */
static bool only_returned(const struct returned *set, LLVMValueRef value)
{
    if (!LLVMIsAInstruction(value))
        return true;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        bool among = false;
        for (unsigned i = 0; i < set->count && !among; i++)
            among = set->values[i] == user;
        if (!among && (!LLVMIsAInstruction(user) ||
                       (LLVMGetInstructionOpcode(user) != LLVMRet && LLVMGetInstructionOpcode(user) != LLVMICmp)))
            return false;
    }
    return true;
}

static bool wraps(const struct rf_program_ir *program, LLVMValueRef function, uint64_t *parameters)
{
    struct returned set = { .count = 0 };
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
        LLVMValueRef last = LLVMGetBasicBlockTerminator(block);
        if (last && LLVMGetInstructionOpcode(last) == LLVMRet &&
            (!LLVMGetNumOperands(last) || !add(&set, LLVMGetOperand(last, 0))))
            return false;
    }
    for (unsigned i = 0; i < set.count; i++)
        if (!comes_from(program, &set, function, set.values[i]))
            return false;
    for (unsigned i = 0; i < set.count; i++)
        if (!only_returned(&set, set.values[i]))
            return false;
    *parameters = set.parameters;
    return set.makes;
}

void rf_program_find_wrappers(struct rf_program_ir *program)
{
    for (bool more = true; more;) { /* one may call another */
        more = false;
        for (size_t i = 0; i < program->function_count; i++) {
            struct rf_function *function = &program->functions[i];
            if (!function->has_body || function->wraps ||
                LLVMGetTypeKind(LLVMGetReturnType(LLVMGetElementType(LLVMTypeOf(function->value)))) != LLVMPointerTypeKind)
                continue;
            function->wraps = wraps(program, function->value, &function->wrapped);
            more |= function->wraps;
        }
    }
}
