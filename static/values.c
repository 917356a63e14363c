/* Values of the program have nodes, and what is in memory objects; what constants and casts mean for who points where. See static/gather.h. */
#include <stdlib.h>

#include "static/gather.h"
#include "trace/grow.h"

/* A table of nodes by the address of their value. */
struct named_node {
    LLVMValueRef value;
    rf_node node;
};

static struct {
    struct named_node *entries;
    size_t capacity, count;
} table;

static size_t slot_of(LLVMValueRef value)
{
    size_t at = (size_t)((uintptr_t)value >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (table.capacity - 1);
    while (table.entries[at].value && table.entries[at].value != value)
        at = (at + 1) & (table.capacity - 1);
    return at;
}

static void grow_table(void)
{
    struct named_node *old = table.entries;
    size_t capacity = table.capacity;
    table.capacity = capacity ? 2 * capacity : 4096;
    table.entries = rf_zeroed(table.capacity, sizeof *table.entries);
    for (size_t i = 0; i < capacity; i++)
        if (old[i].value)
            table.entries[slot_of(old[i].value)] = old[i];
    free(old);
}

static rf_object kept_as(struct rf_program_ir *program, rf_object object, enum rf_object_kind kind)
{
    program->kinds = rf_reserve(program->kinds, &program->kind_capacity, object + 1, sizeof *program->kinds);
    program->kinds[object] = kind;
    program->function_of_object = rf_reserve(program->function_of_object, &program->function_of_object_capacity, object + 1,
                                             sizeof *program->function_of_object);
    program->function_of_object[object] = UINT32_MAX;
    return object;
}

rf_object rf_ir_new_object(struct rf_program_ir *program, enum rf_object_kind kind)
{
    return kept_as(program, rf_points_object(program->points), kind);
}

rf_object rf_ir_new_outside(struct rf_program_ir *program)
{
    return kept_as(program, rf_points_outside(program->points), RF_O_OUTSIDE);
}

rf_object rf_ir_new_memory(struct rf_program_ir *program, enum rf_object_kind kind)
{
    return kept_as(program, rf_points_memory(program->points), kind);
}

rf_node rf_ir_outside(const struct rf_program_ir *program)
{
    return rf_points_held(program->points, program->outside);
}

rf_node rf_ir_given(const struct rf_program_ir *program)
{
    return rf_points_kept(program->points, program->outside);
}

/* How far behind its first operand an address lies; false: it depends on the run, or lies before it. */
bool rf_ir_constant_offset(LLVMTargetDataRef layout, LLVMValueRef address, uint64_t *offset)
{
    LLVMTypeRef type = LLVMGetGEPSourceElementType(address);
    for (int i = 1; i < LLVMGetNumOperands(address); i++) {
        LLVMValueRef index = LLVMGetOperand(address, (unsigned)i);
        if (!LLVMIsAConstantInt(index))
            return false;
        long long value = LLVMConstIntGetSExtValue(index);
        if (value < 0)
            return false;
        if (i == 1) {
            *offset += (uint64_t)value * LLVMABISizeOfType(layout, type);
        } else if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
            *offset += LLVMOffsetOfElement(layout, type, (unsigned)value);
            type = LLVMStructGetTypeAtIndex(type, (unsigned)value);
        } else if (LLVMGetTypeKind(type) == LLVMArrayTypeKind) {
            type = LLVMGetElementType(type);
            *offset += (uint64_t)value * LLVMABISizeOfType(layout, type);
        } else {
            return false;
        }
    }
    return true;
}

LLVMOpcode rf_ir_opcode_of(LLVMValueRef value)
{
    return LLVMIsAConstantExpr(value)  ? LLVMGetConstOpcode(value)
           : LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value)
                                       : 0;
}

/* May what an instruction or an expression of constants computes lie elsewhere in the object that an operand of it points to? */
static bool is_moved(LLVMValueRef value)
{
    switch (rf_ir_opcode_of(value)) {
    case LLVMBitCast:
    case LLVMAddrSpaceCast:
    case LLVMPtrToInt:
    case LLVMIntToPtr:
    case LLVMFreeze:
    case LLVMSelect:
    case LLVMPHI:
    case LLVMExtractValue:
    case LLVMInsertValue:
    case LLVMExtractElement:
    case LLVMInsertElement:
    case LLVMShuffleVector:
        return false;
    default:
        return true;
    }
}

/* Does it lead to a part of what is pointed to? Steps from one element of an array to the next would, in a loop, make places without
 * end; a byte's distance that is one of words is that of a base class. */
static bool is_part(LLVMValueRef address, uint64_t distance)
{
    LLVMTypeRef type = LLVMGetGEPSourceElementType(address);
    if (LLVMIsNull(LLVMGetOperand(address, 1)))
        return true;
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 8 && distance % 8 == 0;
}

/* What comes out of casts, arithmetic and their like is what went in, there or elsewhere in the same objects. */
void rf_ir_pass_through(struct rf_program_ir *program, LLVMValueRef value, rf_node node)
{
    uint64_t distance = 0;
    if (rf_ir_opcode_of(value) == LLVMGetElementPtr &&
        rf_ir_constant_offset(LLVMGetModuleDataLayout(program->module), value, &distance) && distance < RF_ANYWHERE &&
        is_part(value, distance)) {
        rf_points_move(program->points, node, rf_ir_node_of(program, LLVMGetOperand(value, 0)), (uint32_t)distance);
        return;
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        (is_moved(value) ? rf_points_shift : rf_points_copy)(program->points, node,
                                                             rf_ir_node_of(program, LLVMGetOperand(value, (unsigned)i)));
}

/* Is what it computes no address, whatever it is computed from? The distance of two pointers is none: added to one of them it gives the
 * other only inside one object (doc/static.md); nor are products, quotients and remainders. */
bool rf_ir_is_number(LLVMValueRef instruction)
{
    switch (rf_ir_opcode_of(instruction)) {
    case LLVMSub:
        return rf_ir_opcode_of(LLVMGetOperand(instruction, 0)) == LLVMPtrToInt &&
               rf_ir_opcode_of(LLVMGetOperand(instruction, 1)) == LLVMPtrToInt;
    case LLVMMul:
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem:
        return true;
    default:
        return false;
    }
}

/* What a variable holds from the beginning, each part at its place. */
static void hold(struct rf_program_ir *program, rf_object variable, uint64_t distance, LLVMValueRef value)
{
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(program->module);
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMIsNull(value) || LLVMIsAConstantInt(value))
        return;
    if (!LLVMIsAConstantStruct(value) && !LLVMIsAConstantArray(value)) {
        uint32_t near = distance < RF_ANYWHERE ? (uint32_t)distance : RF_ANYWHERE;
        rf_points_copy(program->points, rf_points_kept(program->points, rf_points_place(program->points, variable, near)),
                       rf_ir_node_of(program, value));
        return;
    }
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(value); i++)
        hold(program, variable,
             distance + (LLVMIsAConstantStruct(value) ? LLVMOffsetOfElement(layout, type, i)
                                                      : i * LLVMABISizeOfType(layout, LLVMGetElementType(type))),
             LLVMGetOperand(value, i));
}

/* A constant is known when it is first met. */
static void define_constant(struct rf_program_ir *program, LLVMValueRef value, rf_node node)
{
    if (LLVMIsAGlobalVariable(value)) {
        bool own = LLVMIsThreadLocal(value);
        bool constant = LLVMIsGlobalConstant(value) && LLVMGetInitializer(value);
        rf_object object = rf_ir_new_memory(program, own ? RF_O_THREAD_LOCAL : constant ? RF_O_CONSTANT : RF_O_GLOBAL);
        rf_points_add(program->points, node, object);
        LLVMValueRef first = LLVMGetInitializer(value);
        if (first)
            hold(program, object, 0, first);
        if (LLVMIsDeclaration(value)) /* a variable of a library */
            rf_points_copy(program->points, rf_ir_given(program), node);
        return;
    }
    if (LLVMIsAFunction(value)) {
        uint32_t number = rf_program_function(program, value);
        if (number != UINT32_MAX)
            rf_points_add(program->points, node, program->functions[number].object);
        return;
    }
    if (LLVMIsAGlobalAlias(value)) {
        rf_points_copy(program->points, node, rf_ir_node_of(program, LLVMAliasGetAliasee(value)));
        return;
    }
    if (LLVMIsAGlobalIFunc(value)) {
        rf_points_copy(program->points, node, rf_ir_outside(program));
        return;
    }
    if (LLVMIsAConstantExpr(value)) {
        rf_ir_pass_through(program, value, node);
        return;
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++) /* an aggregate holds what its parts are */
        rf_points_copy(program->points, node, rf_ir_node_of(program, LLVMGetOperand(value, (unsigned)i)));
}

rf_node rf_ir_node_of(struct rf_program_ir *program, LLVMValueRef value)
{
    if (2 * (table.count + 1) > table.capacity)
        grow_table();
    size_t at = slot_of(value);
    if (table.entries[at].value)
        return table.entries[at].node;
    rf_node node = rf_points_node(program->points);
    table.entries[at] = (struct named_node){ value, node };
    table.count++;
    if (LLVMIsConstant(value) && !LLVMIsABlockAddress(value))
        define_constant(program, value, node);
    return node;
}

/* Invariant 1. */
bool rf_ir_may_point(LLVMTypeRef type)
{
    switch (LLVMGetTypeKind(type)) {
    case LLVMVoidTypeKind:
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
    case LLVMX86_FP80TypeKind:
    case LLVMFP128TypeKind:
    case LLVMPPC_FP128TypeKind:
    case LLVMLabelTypeKind:
    case LLVMMetadataTypeKind:
    case LLVMTokenTypeKind:
        return false;
    case LLVMIntegerTypeKind:
        return LLVMGetIntTypeWidth(type) >= 64;
    default:
        return true;
    }
}
