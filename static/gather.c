/* What each instruction means for who points where. See static/program.h. */
#include <stdlib.h>
#include <string.h>

#include "static/gather.h"
#include "trace/grow.h"

static void gather_instruction(struct rf_program_ir *program, uint32_t function, LLVMValueRef instruction)
{
    struct rf_points *points = program->points;
    rf_node result;
    bool atomic = false;
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMAlloca:
        rf_points_add(points, rf_ir_node_of(program, instruction), rf_ir_new_memory(program, RF_O_LOCAL));
        return;
    case LLVMLoad:
        atomic = LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic;
        if (rf_ir_may_point(LLVMTypeOf(instruction)))
            rf_ir_load_or_store(program, true, LLVMTypeOf(instruction), rf_ir_node_of(program, instruction),
                                rf_ir_node_of(program, LLVMGetOperand(instruction, 0)));
        rf_ir_add_access(program, function, instruction, LLVMGetOperand(instruction, 0), LLVMTypeOf(instruction), true,
                         false, atomic);
        return;
    case LLVMStore: {
        atomic = LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic;
        if (rf_ir_may_point(LLVMTypeOf(LLVMGetOperand(instruction, 0))))
            rf_ir_load_or_store(program, false, LLVMTypeOf(LLVMGetOperand(instruction, 0)),
                                rf_ir_node_of(program, LLVMGetOperand(instruction, 0)),
                                rf_ir_node_of(program, LLVMGetOperand(instruction, 1)));
        struct rf_access *access = rf_ir_add_access(program, function, instruction, LLVMGetOperand(instruction, 1),
                                                    LLVMTypeOf(LLVMGetOperand(instruction, 0)), false, true, atomic);
        if (access && rf_ir_may_point(LLVMTypeOf(LLVMGetOperand(instruction, 0))))
            access->stored = rf_ir_node_of(program, LLVMGetOperand(instruction, 0));
        return;
    }
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg: {
        unsigned stored = LLVMGetInstructionOpcode(instruction) == LLVMAtomicRMW ? 1 : 2;
        rf_node pointer = rf_ir_node_of(program, LLVMGetOperand(instruction, 0));
        LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(instruction, stored));
        rf_ir_load_or_store(program, true, type, rf_ir_node_of(program, instruction), pointer);
        rf_ir_load_or_store(program, false, type, rf_ir_node_of(program, LLVMGetOperand(instruction, stored)), pointer);
        if (stored == 1 && LLVMGetAtomicRMWBinOp(instruction) != LLVMAtomicRMWBinOpXchg) { /* what was there, moved */
            result = rf_points_node(points);
            rf_points_shift(points, result, rf_ir_node_of(program, instruction));
            rf_points_store(points, pointer, result);
        }
        rf_ir_add_access(program, function, instruction, LLVMGetOperand(instruction, 0),
                         LLVMTypeOf(LLVMGetOperand(instruction, stored)), true, true, true);
        return;
    }
    case LLVMCall:
    case LLVMInvoke:
    case LLVMCallBr:
        rf_ir_gather_call(program, function, instruction);
        return;
    case LLVMRet:
        if (LLVMGetNumOperands(instruction))
            rf_points_copy(points, program->functions[function].result,
                           rf_ir_node_of(program, LLVMGetOperand(instruction, 0)));
        return;
    case LLVMVAArg:
        result = rf_points_node(points);
        rf_points_load(points, result, rf_ir_shifted(program, rf_ir_node_of(program, LLVMGetOperand(instruction, 0))));
        rf_points_load(points, rf_ir_node_of(program, instruction), result);
        return;
    case LLVMLandingPad:
    case LLVMCatchPad:
        rf_points_copy(points, rf_ir_node_of(program, instruction), rf_ir_outside(program));
        return;
    case LLVMResume:
        rf_ir_give_away(program, rf_ir_node_of(program, LLVMGetOperand(instruction, 0)));
        return;
    case LLVMPHI:
        for (unsigned i = 0; i < LLVMCountIncoming(instruction); i++)
            rf_points_copy(points, rf_ir_node_of(program, instruction),
                           rf_ir_node_of(program, LLVMGetIncomingValue(instruction, i)));
        return;
    case LLVMICmp:
    case LLVMFCmp:
    case LLVMBr:
    case LLVMSwitch:
    case LLVMIndirectBr:
    case LLVMUnreachable:
    case LLVMFence:
        return;
    default: /* casts, arithmetic, select, aggregates, vectors: what comes out went in */
        if (rf_ir_may_point(LLVMTypeOf(instruction)) && !rf_ir_is_number(instruction))
            rf_ir_pass_through(program, instruction, rf_ir_node_of(program, instruction));
    }
}

/* Code outside calls functions that it was given. */
static void heard_given(void *context, rf_object object)
{
    struct rf_program_ir *program = context;
    if (rf_program_kind(program, object) == RF_O_OUTSIDE)
        return;
    if (rf_program_kind(program, object) == RF_O_FUNCTION) {
        if (program->functions[program->function_of_object[object]].has_body)
            rf_ir_call_from_outside(program, program->function_of_object[object]);
        return;
    }
    rf_points_give(program->points, object);
}

static int by_value(const void *a, const void *b)
{
    const struct rf_function *one = a, *other = b;
    return one->value < other->value ? -1 : one->value > other->value;
}

uint32_t rf_program_function(const struct rf_program_ir *program, LLVMValueRef value)
{
    struct rf_function key = { .value = value };
    const struct rf_function *found = bsearch(&key, program->functions, program->function_count, sizeof key, by_value);
    return found ? (uint32_t)(found - program->functions) : UINT32_MAX;
}

void rf_program_analyze(struct rf_program_ir *program, void (*progress)(uint64_t, uint64_t))
{
    program->points = rf_points_new();
    program->specific = rf_points_node(program->points);
    program->outside = rf_ir_new_outside(program);
    for (LLVMValueRef value = LLVMGetFirstFunction(program->module); value; value = LLVMGetNextFunction(value)) {
        program->functions = rf_reserve(program->functions, &program->function_capacity, program->function_count + 1,
                                        sizeof *program->functions);
        program->functions[program->function_count++] =
            (struct rf_function){ .value = value, .has_body = !LLVMIsDeclaration(value) };
    }
    qsort(program->functions, program->function_count, sizeof *program->functions, by_value);
    for (uint32_t i = 0; i < program->function_count; i++) {
        struct rf_function *function = &program->functions[i];
        size_t length;
        bool known = !function->has_body && rf_ir_is_known(LLVMGetValueName2(function->value, &length));
        function->object = function->has_body || known ? rf_ir_new_object(program, RF_O_FUNCTION) : program->outside;
        function->result = rf_points_node(program->points);
        function->varargs = rf_points_node(program->points);
        if (function->has_body || known)
            program->function_of_object[function->object] = i;
    }
    rf_program_find_wrappers(program);
    rf_points_listen(program->points, rf_ir_given(program), heard_given, program);
    for (uint32_t i = 0; i < program->function_count; i++)
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(program->functions[i].value); block;
             block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef at = LLVMGetFirstInstruction(block); at; at = LLVMGetNextInstruction(at))
                gather_instruction(program, i, at);
    /* The system gives main() its arguments: lists of strings, which nobody else knows of. */
    LLVMValueRef first = LLVMGetNamedFunction(program->module, "main");
    rf_object arguments = rf_ir_new_memory(program, RF_O_GLOBAL);
    rf_points_add(program->points, rf_points_kept(program->points, rf_points_anywhere(program->points, arguments)),
                  rf_points_anywhere(program->points, arguments));
    for (unsigned i = 0; first && i < LLVMCountParams(first); i++)
        rf_points_add(program->points, rf_ir_node_of(program, LLVMGetParam(first, i)), arguments);
    rf_points_solve(program->points, progress);
    rf_ir_order_sites(program);
}
