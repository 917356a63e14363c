/* What each instruction means for who points where. See static/program.h. */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Target.h>

#include "static/program.h"
#include "trace/grow.h"

/* ---- values have nodes: a table by address ---- */

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

static rf_object new_object(struct rf_program_ir *program, enum rf_object_kind kind)
{
    return kept_as(program, rf_points_object(program->points), kind);
}

static rf_object new_memory(struct rf_program_ir *program, enum rf_object_kind kind)
{
    return kept_as(program, rf_points_memory(program->points), kind);
}

static rf_node outside(const struct rf_program_ir *program)
{
    return rf_points_held(program->points, program->outside);
}

static rf_node node_of(struct rf_program_ir *program, LLVMValueRef value);

/* How far behind its first operand an address lies; false: it depends on the run, or lies before it. */
static bool constant_offset(LLVMTargetDataRef layout, LLVMValueRef address, uint64_t *offset)
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

static LLVMOpcode opcode_of(LLVMValueRef value)
{
    return LLVMIsAConstantExpr(value)  ? LLVMGetConstOpcode(value)
           : LLVMIsAInstruction(value) ? LLVMGetInstructionOpcode(value)
                                       : 0;
}

/* May what an instruction or an expression of constants computes lie elsewhere in the object that an operand of it points to? */
static bool is_moved(LLVMValueRef value)
{
    switch (opcode_of(value)) {
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
static void pass_through(struct rf_program_ir *program, LLVMValueRef value, rf_node node)
{
    uint64_t distance = 0;
    if (opcode_of(value) == LLVMGetElementPtr &&
        constant_offset(LLVMGetModuleDataLayout(program->module), value, &distance) && distance < RF_ANYWHERE &&
        is_part(value, distance)) {
        rf_points_move(program->points, node, node_of(program, LLVMGetOperand(value, 0)), (uint32_t)distance);
        return;
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        (is_moved(value) ? rf_points_shift : rf_points_copy)(program->points, node,
                                                             node_of(program, LLVMGetOperand(value, (unsigned)i)));
}

/* Is what it computes no address, whatever it is computed from? The distance of two pointers is none: added to one of them it gives the
 * other only inside one object (doc/static.md); nor are products, quotients and remainders. */
static bool is_number(LLVMValueRef instruction)
{
    switch (opcode_of(instruction)) {
    case LLVMSub:
        return opcode_of(LLVMGetOperand(instruction, 0)) == LLVMPtrToInt &&
               opcode_of(LLVMGetOperand(instruction, 1)) == LLVMPtrToInt;
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
                       node_of(program, value));
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
        rf_object object = new_memory(program, own ? RF_O_THREAD_LOCAL : constant ? RF_O_CONSTANT : RF_O_GLOBAL);
        rf_points_add(program->points, node, object);
        LLVMValueRef first = LLVMGetInitializer(value);
        if (first)
            hold(program, object, 0, first);
        if (LLVMIsDeclaration(value)) /* a variable of a library */
            rf_points_copy(program->points, outside(program), node);
        return;
    }
    if (LLVMIsAFunction(value)) {
        uint32_t number = rf_program_function(program, value);
        if (number != UINT32_MAX)
            rf_points_add(program->points, node, program->functions[number].object);
        return;
    }
    if (LLVMIsAGlobalAlias(value)) {
        rf_points_copy(program->points, node, node_of(program, LLVMAliasGetAliasee(value)));
        return;
    }
    if (LLVMIsAGlobalIFunc(value)) {
        rf_points_copy(program->points, node, outside(program));
        return;
    }
    if (LLVMIsAConstantExpr(value)) {
        pass_through(program, value, node);
        return;
    }
    for (int i = 0; i < LLVMGetNumOperands(value); i++) /* an aggregate holds what its parts are */
        rf_points_copy(program->points, node, node_of(program, LLVMGetOperand(value, (unsigned)i)));
}

static rf_node node_of(struct rf_program_ir *program, LLVMValueRef value)
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
static bool may_point(LLVMTypeRef type)
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

/* ---- sites and accesses ---- */

/* Takes "./" and "x/../" out of a path: they say nothing, and others leave them out. */
static void shorten(char *path)
{
    char *to = path;
    for (const char *from = path; *from;) {
        size_t length = strcspn(from, "/"), whole = length + (from[length] == '/');
        char *last = to > path ? to - 1 : path; /* where the part before this one begins */
        while (last > path && last[-1] != '/')
            last--;
        bool up = length == 2 && strncmp(from, "..", 2) == 0;
        if (up && to - last > 1 && strncmp(last, "../", 3) != 0) {
            to = last;
        } else if (length != 1 || from[0] != '.') {
            memmove(to, from, whole);
            to += whole;
        }
        from += whole;
    }
    *to = 0;
}

static uint32_t site_of(struct rf_program_ir *program, LLVMValueRef instruction)
{
    unsigned line = LLVMGetDebugLocLine(instruction), length = 0, directory_length = 0;
    const char *name = LLVMGetDebugLocFilename(instruction, &length);
    const char *directory = LLVMGetDebugLocDirectory(instruction, &directory_length);
    if (!line || !name || !length)
        return UINT32_MAX;
    char *file = rf_zeroed(length + directory_length + 2, 1);
    if (name[0] != '/' && directory_length) {
        memcpy(file, directory, directory_length);
        file[directory_length] = '/';
        memcpy(file + directory_length + 1, name, length);
    } else {
        memcpy(file, name, length);
    }
    shorten(file);
    /* Neighbours share a line most of the time. */
    for (size_t i = program->site_count, looked = 0; i-- > 0 && looked < 64; looked++)
        if (program->sites[i].line == line && strcmp(program->sites[i].file, file) == 0) {
            free(file);
            return (uint32_t)i;
        }
    program->sites = rf_reserve(program->sites, &program->site_capacity, program->site_count + 1, sizeof *program->sites);
    program->sites[program->site_count] = (struct rf_site_line){ file, line };
    return (uint32_t)program->site_count++;
}

/* Invariant 3: the pointer that a constant distance was added to. An index beyond its array is still inside the object, or the program is
 * wrong before it races. */
static LLVMValueRef find_bytes(const struct rf_program_ir *program, LLVMValueRef pointer, LLVMTypeRef type, uint64_t *begin,
                               uint64_t *end)
{
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(program->module);
    LLVMValueRef from = pointer;
    uint64_t offset = 0;
    *begin = 0;
    *end = UINT64_MAX;
    for (LLVMOpcode opcode; (opcode = opcode_of(from)) == LLVMGetElementPtr || opcode == LLVMBitCast;) {
        if (opcode == LLVMGetElementPtr && !constant_offset(layout, from, &offset))
            return pointer;
        from = LLVMGetOperand(from, 0);
    }
    *begin = offset;
    if (type)
        *end = offset + LLVMStoreSizeOfType(layout, type);
    return from;
}

/* type: of what is accessed, NULL if it is more than one value. Returns NULL if its line is not known. */
static struct rf_access *add_access(struct rf_program_ir *program, uint32_t function, LLVMValueRef instruction,
                                    LLVMValueRef pointer, LLVMTypeRef type, bool reads, bool writes, bool atomic)
{
    uint32_t site = site_of(program, instruction);
    if (site == UINT32_MAX) {
        program->without_line++;
        return NULL;
    }
    program->accesses =
        rf_reserve(program->accesses, &program->access_capacity, program->access_count + 1, sizeof *program->accesses);
    struct rf_access *access = &program->accesses[program->access_count++];
    *access = (struct rf_access){
        .instruction = instruction, .function = function, .site = site, .reads = reads, .writes = writes, .atomic = atomic
    };
    LLVMValueRef from = find_bytes(program, pointer, type, &access->begin, &access->end);
    access->pointer = node_of(program, from);
    return access;
}

static void add_origin(struct rf_program_ir *program, rf_object object, LLVMValueRef instruction)
{
    program->origins =
        rf_reserve(program->origins, &program->origin_capacity, program->origin_count + 1, sizeof *program->origins);
    program->origins[program->origin_count++] = (struct rf_origin){ object, site_of(program, instruction) };
}

/* ---- calls ---- */

static uint32_t add_call(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction, bool makes_thread)
{
    uint32_t number = (uint32_t)program->call_count;
    program->calls = rf_reserve(program->calls, &program->call_capacity, program->call_count + 1, sizeof *program->calls);
    program->calls[program->call_count++] =
        (struct rf_call){ .instruction = instruction, .caller = caller, .makes_thread = makes_thread };
    struct rf_function *in = &program->functions[caller];
    in->calls = rf_reserve(in->calls, &in->call_capacity, in->call_count + 1, sizeof *in->calls);
    in->calls[in->call_count++] = number;
    return number;
}

static bool add_callee(struct rf_program_ir *program, uint32_t call, uint32_t callee)
{
    struct rf_call *at = &program->calls[call];
    for (size_t i = 0; i < at->callee_count; i++)
        if (at->callees[i] == callee)
            return false;
    at->callees = rf_reserve(at->callees, &at->callee_capacity, at->callee_count + 1, sizeof *at->callees);
    at->callees[at->callee_count++] = callee;
    return true;
}

static rf_node parameter(struct rf_program_ir *program, uint32_t function, unsigned index)
{
    LLVMValueRef value = program->functions[function].value;
    return index < LLVMCountParams(value) ? node_of(program, LLVMGetParam(value, index))
                                          : program->functions[function].varargs;
}

/* Everything that it knows of may go to, and come from, code that we do not see. */
static void call_from_outside(struct rf_program_ir *program, uint32_t function)
{
    struct rf_function *at = &program->functions[function];
    if (at->called_from_outside)
        return;
    at->called_from_outside = true;
    for (unsigned i = 0; i < LLVMCountParams(at->value); i++)
        rf_points_copy(program->points, parameter(program, function, i), outside(program));
    rf_points_copy(program->points, at->varargs, outside(program));
    rf_points_copy(program->points, outside(program), at->result);
}

static void give_away(struct rf_program_ir *program, rf_node node)
{
    rf_points_copy(program->points, outside(program), node);
}

#define MOST_WORDS 64u /* that are told apart when they are copied, or loaded and stored as one value */

static rf_node moved(struct rf_program_ir *program, rf_node pointer, uint32_t distance)
{
    if (!distance)
        return pointer;
    rf_node node = rf_points_node(program->points);
    rf_points_move(program->points, node, pointer, distance);
    return node;
}

static rf_node shifted(struct rf_program_ir *program, rf_node pointer)
{
    rf_node node = rf_points_node(program->points);
    rf_points_shift(program->points, node, pointer);
    return node;
}

/* size: NULL if it is not known. */
static void copy_memory(struct rf_program_ir *program, rf_node to, rf_node from, LLVMValueRef size)
{
    bool known = size && LLVMIsAConstantInt(size) && LLVMConstIntGetZExtValue(size) <= 8 * MOST_WORDS;
    uint64_t end = known ? LLVMConstIntGetZExtValue(size) : 1;
    for (uint32_t at = 0; at < end; at += 8) {
        rf_node between = rf_points_node(program->points);
        rf_points_load(program->points, between, known ? moved(program, from, at) : shifted(program, from));
        rf_points_store(program->points, known ? moved(program, to, at) : shifted(program, to), between);
    }
}

/* A value that is loaded or stored may be several words. */
static void load_or_store(struct rf_program_ir *program, bool load, LLVMTypeRef type, rf_node value, rf_node pointer)
{
    uint64_t size = LLVMStoreSizeOfType(LLVMGetModuleDataLayout(program->module), type);
    bool few = size <= 8 * MOST_WORDS;
    for (uint32_t at = 0; at < (few ? size : 1); at += 8) {
        rf_node there = few ? moved(program, pointer, at) : shifted(program, pointer);
        load ? rf_points_load(program->points, value, there) : rf_points_store(program->points, there, value);
    }
}

static const struct known {
    const char *name, *returns, *arguments;
} knowns[] = {
#define RF_LIBC(name, returns, arguments) { #name, returns, arguments },
#include "static/libc.def"
#undef RF_LIBC
};

static const struct known *known_as(const char *name)
{
    for (size_t i = 0; i < sizeof knowns / sizeof *knowns; i++)
        if (strcmp(knowns[i].name, name) == 0)
            return &knowns[i];
    return NULL;
}

bool rf_program_makes_memory(const char *name)
{
    const struct known *known = known_as(name);
    return known && strcmp(known->returns, "new") == 0;
}

/* Does it return a block of the heap, as malloc() does, and not something that a library has made of it? */
static bool allocates(const char *name)
{
    return rf_program_makes_memory(name) &&
           (strstr(name, "alloc") || strstr(name, "memalign") || strncmp(name, "_Zn", 3) == 0);
}

/* The calls in a wrapper (static/wrappers.c) that made what it returned. */
static void add_origins_in(struct rf_program_ir *program, rf_object object, LLVMValueRef function, unsigned depth)
{
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef at = LLVMGetFirstInstruction(block); at; at = LLVMGetNextInstruction(at)) {
            LLVMValueRef callee = LLVMIsACallInst(at) || LLVMIsAInvokeInst(at) ? LLVMGetCalledValue(at) : NULL;
            uint32_t number = callee && LLVMIsAFunction(callee) ? rf_program_function(program, callee) : UINT32_MAX;
            size_t length;
            if (number == UINT32_MAX)
                continue;
            if (program->functions[number].wraps && depth < 16)
                add_origins_in(program, object, callee, depth + 1);
            else if (allocates(LLVMGetValueName2(callee, &length)))
                add_origin(program, object, at);
        }
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* A library's function. What the runtime intercepts it sees as accesses of the memory that is pointed to, at the call. */
static void call_outside(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef argument = LLVMGetOperand(instruction, i);
        give_away(program, node_of(program, argument));
        if (LLVMGetTypeKind(LLVMTypeOf(argument)) == LLVMPointerTypeKind)
            add_access(program, caller, instruction, argument, NULL, true, true, false);
    }
    rf_points_copy(program->points, node_of(program, instruction), outside(program));
    add_origin(program, 0, instruction);
}

/* A call whose callees come to be known as its function's node grows. */
struct pending {
    struct rf_program_ir *program;
    uint32_t call;
    bool thread,
        back; /* a new thread's function, with one argument; a function that libc calls back, with any of the arguments */
    rf_node argument; /* of these two */
};

/* A structure that is passed by value: the caller says where it is, and the function gets the address of a copy on its own stack. What it
 * finds among unnamed arguments is the content itself. */
static void pass_by_value(struct rf_program_ir *program, uint32_t function, unsigned index, rf_node argument)
{
    rf_node to = parameter(program, function, index);
    if (index >= LLVMCountParams(program->functions[function].value)) {
        rf_points_load(program->points, to, shifted(program, argument));
        return;
    }
    rf_points_add(program->points, to, new_memory(program, RF_O_LOCAL));
    copy_memory(program, to, argument, NULL);
}

static bool is_by_value(LLVMValueRef call, unsigned index)
{
    static const char name[] = "byval";
    return LLVMGetCallSiteEnumAttribute(call, index + 1, LLVMGetEnumAttributeKindForName(name, sizeof name - 1));
}

static void reach(struct rf_program_ir *program, uint32_t call, uint32_t function)
{
    LLVMValueRef instruction = program->calls[call].instruction;
    if (!add_callee(program, call, function))
        return;
    for (unsigned i = 0; i < LLVMGetNumArgOperands(instruction); i++) {
        rf_node argument = node_of(program, LLVMGetOperand(instruction, i));
        rf_points_copy(program->points, parameter(program, function, i), argument);
        if (is_by_value(instruction, i))
            pass_by_value(program, function, i, argument);
    }
    if (!program->functions[function].wraps) {
        rf_points_copy(program->points, node_of(program, instruction), program->functions[function].result);
        return;
    }
    rf_object made = new_memory(program, RF_O_HEAP);
    rf_points_add(program->points, node_of(program, instruction), made);
    add_origins_in(program, made, program->functions[function].value, 0);
    for (unsigned i = 0; i < LLVMGetNumArgOperands(instruction) && i < 64; i++)
        if (program->functions[function].wrapped >> i &
            1) { /* it may be returned, or be what the new memory has its content from */
            rf_points_copy(program->points, node_of(program, instruction), node_of(program, LLVMGetOperand(instruction, i)));
            copy_memory(program, node_of(program, instruction), node_of(program, LLVMGetOperand(instruction, i)), NULL);
        }
}

static void call_known(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction, unsigned count,
                       const struct known *known);

/* The address of a function of libc was taken, and is called. */
static void reach_known(struct rf_program_ir *program, uint32_t call, uint32_t function)
{
    LLVMValueRef instruction = program->calls[call].instruction;
    size_t length;
    if (add_callee(program, call, function))
        call_known(program, program->calls[call].caller, instruction, LLVMGetNumArgOperands(instruction),
                   known_as(LLVMGetValueName2(program->functions[function].value, &length)));
}

static void heard_callee(void *context, rf_object object)
{
    struct pending *pending = context;
    struct rf_program_ir *program = pending->program;
    if (rf_program_kind(program, object) == RF_O_OUTSIDE && !pending->thread && !pending->back) {
        LLVMValueRef instruction = program->calls[pending->call].instruction;
        call_outside(program, program->calls[pending->call].caller, instruction, LLVMGetNumArgOperands(instruction));
    }
    if (rf_program_kind(program, object) != RF_O_FUNCTION)
        return;
    uint32_t function = program->function_of_object[object];
    if (!program->functions[function].has_body) { /* static/libc.def knows what it does */
        if (!pending->thread && !pending->back)
            reach_known(program, pending->call, function);
        return;
    }
    if (!pending->thread && !pending->back) {
        reach(program, pending->call, function);
    } else if (add_callee(program, pending->call, function)) {
        LLVMValueRef value = program->functions[function].value;
        for (unsigned i = 0; i < LLVMCountParams(value); i++)
            rf_points_copy(program->points, parameter(program, function, i), pending->argument);
        if (pending->thread) /* pthread_join() gives it to whoever asks */
            give_away(program, program->functions[function].result);
    }
}

static void call_by_pointer(struct rf_program_ir *program, uint32_t call, rf_node function, bool thread, bool back,
                            rf_node argument)
{
    struct pending *pending = rf_zeroed(1, sizeof *pending);
    *pending = (struct pending){ program, call, thread, back, argument };
    rf_points_listen(program->points, function, heard_callee, pending);
}

static void call_known(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction, unsigned count,
                       const struct known *known)
{
    size_t last = strlen(known->arguments) - 1;
    rf_node result = node_of(program, instruction);
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef argument = LLVMGetOperand(instruction, i);
        char what = known->arguments[i < last ? i : last];
        if (what == 'f') {
            rf_node any = rf_points_node(program->points);
            for (unsigned j = 0; j < count; j++) /* qsort() hands on what lies inside its array */
                rf_points_shift(program->points, any, node_of(program, LLVMGetOperand(instruction, j)));
            call_by_pointer(program, add_call(program, caller, instruction, false), node_of(program, argument), false, true,
                            any);
        } else if (what != '.' && LLVMGetTypeKind(LLVMTypeOf(argument)) == LLVMPointerTypeKind) {
            add_access(program, caller, instruction, argument, NULL, what != 'w', what != 'r', false);
        }
    }
    if (strcmp(known->name, "mmap") == 0) /* it changes all of the memory, which others may know the address of */
        add_access(program, caller, instruction, instruction, NULL, false, true, false);
    if (strcmp(known->returns, "own") == 0) {
        static rf_object own[sizeof knowns / sizeof *knowns];
        rf_object *object = &own[known - knowns];
        if (!*object)
            *object = new_memory(program, RF_O_GLOBAL);
        rf_points_add(program->points, result, *object);
        add_access(program, caller, instruction, instruction, NULL, false, true, false);
    } else if (strcmp(known->returns, "new") == 0) {
        bool heap = allocates(known->name);
        rf_object made = new_memory(program, heap ? RF_O_HEAP : RF_O_LIBRARY);
        rf_points_add(program->points, result, made);
        add_origin(program, heap ? made : 0, instruction);
    } else if (known->returns[0] != '-') /* or what lies behind it: strchr() */
        rf_points_shift(program->points, result,
                        node_of(program, LLVMGetOperand(instruction, (unsigned)(known->returns[0] - '0'))));
    if (strcmp(known->returns, "new") != 0)
        add_origin(program, 0, instruction);
    if (strstr(known->name, "realloc")) {
        rf_points_copy(program->points, result, node_of(program, LLVMGetOperand(instruction, 0)));
        copy_memory(program, result, node_of(program, LLVMGetOperand(instruction, 0)), NULL);
    }
    if (strcmp(known->name, "memcpy") == 0 || strcmp(known->name, "memmove") == 0 || strcmp(known->name, "mempcpy") == 0)
        copy_memory(program, node_of(program, LLVMGetOperand(instruction, 0)),
                    node_of(program, LLVMGetOperand(instruction, 1)), LLVMGetOperand(instruction, 2));
}

static void make_thread(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction, unsigned function,
                        unsigned argument)
{
    uint32_t call = add_call(program, caller, instruction, true);
    call_by_pointer(program, call, node_of(program, LLVMGetOperand(instruction, function)), true, false,
                    node_of(program, LLVMGetOperand(instruction, argument)));
    program->given = rf_reserve(program->given, &program->given_capacity, program->given_count + 1, sizeof *program->given);
    program->given[program->given_count++] = node_of(program, LLVMGetOperand(instruction, argument));
    add_access(program, caller, instruction, LLVMGetOperand(instruction, 0), NULL, false, true, false);
}

/* True: it is an intrinsic, and has been dealt with. */
static bool intrinsic(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction, const char *name)
{
    if (!starts(name, "llvm."))
        return false;
    rf_node result = node_of(program, instruction);
    if (starts(name, "llvm.memcpy") || starts(name, "llvm.memmove")) {
        LLVMValueRef to = LLVMGetOperand(instruction, 0), from = LLVMGetOperand(instruction, 1);
        copy_memory(program, node_of(program, to), node_of(program, from), LLVMGetOperand(instruction, 2));
        add_access(program, caller, instruction, to, NULL, false, true, false);
        add_access(program, caller, instruction, from, NULL, true, false, false);
    } else if (starts(name, "llvm.memset")) {
        add_access(program, caller, instruction, LLVMGetOperand(instruction, 0), NULL, false, true, false);
    } else if (strcmp(name, "llvm.va_start") == 0) {
        rf_object list = new_object(program, RF_O_VARARGS);
        rf_node pointer = rf_points_node(program->points);
        rf_points_copy(program->points, rf_points_kept(program->points, list), program->functions[caller].varargs);
        rf_points_add(program->points, pointer, list);
        rf_points_store(program->points, shifted(program, node_of(program, LLVMGetOperand(instruction, 0))), pointer);
    } else if (strcmp(name, "llvm.va_copy") == 0) {
        copy_memory(program, node_of(program, LLVMGetOperand(instruction, 0)),
                    node_of(program, LLVMGetOperand(instruction, 1)), NULL);
    } else if (may_point(LLVMTypeOf(instruction))) {
        /* Arithmetic, launder.invariant.group and their like: what comes out went in. */
        for (unsigned i = 0; i < LLVMGetNumArgOperands(instruction); i++)
            rf_points_shift(program->points, result, node_of(program, LLVMGetOperand(instruction, i)));
    }
    return true;
}

/* What a thread keeps for itself under a key: one node for all keys and threads. It may be what a destructor is called with. */
static bool call_for_specific(struct rf_program_ir *program, LLVMValueRef instruction, const char *name, unsigned count)
{
    bool posix = starts(name, "pthread_");
    name += posix ? strlen("pthread_") : 0;
    if (strcmp(name, posix ? "getspecific" : "tss_get") == 0) {
        rf_points_copy(program->points, node_of(program, instruction), program->specific);
    } else if (strcmp(name, posix ? "setspecific" : "tss_set") == 0 && count == 2) {
        rf_points_copy(program->points, program->specific, node_of(program, LLVMGetOperand(instruction, 1)));
    } else {
        if (strcmp(name, posix ? "key_create" : "tss_create") == 0 && count == 2 &&
            !LLVMIsNull(LLVMGetOperand(instruction, 1)))
            give_away(program, program->specific);
        return false;
    }
    return true;
}

static void gather_call(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction)
{
    LLVMValueRef callee = LLVMGetCalledValue(instruction);
    unsigned count = LLVMGetNumArgOperands(instruction);
    /* A call through a cast of a function is a call of it. */
    while (LLVMIsAConstantExpr(callee) && LLVMGetConstOpcode(callee) == LLVMBitCast)
        callee = LLVMGetOperand(callee, 0);
    if (LLVMIsAGlobalAlias(callee))
        callee = LLVMAliasGetAliasee(callee);
    if (LLVMIsAInlineAsm(callee)) {
        call_outside(program, caller, instruction, count);
        return;
    }
    if (!LLVMIsAFunction(callee)) {
        call_by_pointer(program, add_call(program, caller, instruction, false), node_of(program, callee), false, false, 0);
        return;
    }
    size_t length;
    const char *name = LLVMGetValueName2(callee, &length);
    uint32_t function = rf_program_function(program, callee);
    if (intrinsic(program, caller, instruction, name))
        return;
    if (program->functions[function].has_body) {
        reach(program, add_call(program, caller, instruction, false), function);
        return;
    }
    const struct known *known = known_as(name);
    if (strcmp(name, "pthread_create") == 0 && count == 4)
        make_thread(program, caller, instruction, 2, 3);
    else if (strcmp(name, "thrd_create") == 0 && count == 3)
        make_thread(program, caller, instruction, 1, 2);
    else if (strcmp(name, "pthread_join") == 0 || strcmp(name, "thrd_join") == 0) {
        /* What a thread returns is a pointer that may point anywhere its argument did, or outside. */
        rf_points_store(program->points, node_of(program, LLVMGetOperand(instruction, 1)), outside(program));
        if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(instruction, 1))) == LLVMPointerTypeKind)
            add_access(program, caller, instruction, LLVMGetOperand(instruction, 1), NULL, false, true, false);
    } else if (known)
        call_known(program, caller, instruction, count, known);
    else if (!call_for_specific(program, instruction, name, count))
        call_outside(program, caller, instruction, count);
}

/* ---- instructions ---- */

static void gather_instruction(struct rf_program_ir *program, uint32_t function, LLVMValueRef instruction)
{
    struct rf_points *points = program->points;
    rf_node result;
    bool atomic = false;
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMAlloca:
        rf_points_add(points, node_of(program, instruction), new_memory(program, RF_O_LOCAL));
        return;
    case LLVMLoad:
        atomic = LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic;
        if (may_point(LLVMTypeOf(instruction)))
            load_or_store(program, true, LLVMTypeOf(instruction), node_of(program, instruction),
                          node_of(program, LLVMGetOperand(instruction, 0)));
        add_access(program, function, instruction, LLVMGetOperand(instruction, 0), LLVMTypeOf(instruction), true, false,
                   atomic);
        return;
    case LLVMStore: {
        atomic = LLVMGetOrdering(instruction) != LLVMAtomicOrderingNotAtomic;
        if (may_point(LLVMTypeOf(LLVMGetOperand(instruction, 0))))
            load_or_store(program, false, LLVMTypeOf(LLVMGetOperand(instruction, 0)),
                          node_of(program, LLVMGetOperand(instruction, 0)),
                          node_of(program, LLVMGetOperand(instruction, 1)));
        struct rf_access *access = add_access(program, function, instruction, LLVMGetOperand(instruction, 1),
                                              LLVMTypeOf(LLVMGetOperand(instruction, 0)), false, true, atomic);
        if (access && may_point(LLVMTypeOf(LLVMGetOperand(instruction, 0))))
            access->stored = node_of(program, LLVMGetOperand(instruction, 0));
        return;
    }
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg: {
        unsigned stored = LLVMGetInstructionOpcode(instruction) == LLVMAtomicRMW ? 1 : 2;
        rf_node pointer = node_of(program, LLVMGetOperand(instruction, 0));
        LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(instruction, stored));
        load_or_store(program, true, type, node_of(program, instruction), pointer);
        load_or_store(program, false, type, node_of(program, LLVMGetOperand(instruction, stored)), pointer);
        if (stored == 1 && LLVMGetAtomicRMWBinOp(instruction) != LLVMAtomicRMWBinOpXchg) { /* what was there, moved */
            result = rf_points_node(points);
            rf_points_shift(points, result, node_of(program, instruction));
            rf_points_store(points, pointer, result);
        }
        add_access(program, function, instruction, LLVMGetOperand(instruction, 0),
                   LLVMTypeOf(LLVMGetOperand(instruction, stored)), true, true, true);
        return;
    }
    case LLVMCall:
    case LLVMInvoke:
    case LLVMCallBr:
        gather_call(program, function, instruction);
        return;
    case LLVMRet:
        if (LLVMGetNumOperands(instruction))
            rf_points_copy(points, program->functions[function].result, node_of(program, LLVMGetOperand(instruction, 0)));
        return;
    case LLVMVAArg:
        result = rf_points_node(points);
        rf_points_load(points, result, shifted(program, node_of(program, LLVMGetOperand(instruction, 0))));
        rf_points_load(points, node_of(program, instruction), result);
        return;
    case LLVMLandingPad:
    case LLVMCatchPad:
        rf_points_copy(points, node_of(program, instruction), outside(program));
        return;
    case LLVMResume:
        give_away(program, node_of(program, LLVMGetOperand(instruction, 0)));
        return;
    case LLVMPHI:
        for (unsigned i = 0; i < LLVMCountIncoming(instruction); i++)
            rf_points_copy(points, node_of(program, instruction), node_of(program, LLVMGetIncomingValue(instruction, i)));
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
        if (may_point(LLVMTypeOf(instruction)) && !is_number(instruction))
            pass_through(program, instruction, node_of(program, instruction));
    }
}

static void heard_outside(void *context, rf_object object)
{
    struct rf_program_ir *program = context;
    if (rf_program_kind(program, object) == RF_O_FUNCTION &&
        program->functions[program->function_of_object[object]].has_body)
        call_from_outside(program, program->function_of_object[object]);
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
    /* Outside points to itself, and to all that was given to it; what it points to, it may read and change. */
    program->outside = new_object(program, RF_O_OUTSIDE);
    rf_points_add(program->points, outside(program), program->outside);
    rf_points_load(program->points, outside(program), outside(program));
    rf_points_store(program->points, outside(program), outside(program));
    rf_points_shift(program->points, outside(program), outside(program));
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
        bool known = !function->has_body && known_as(LLVMGetValueName2(function->value, &length));
        function->object = function->has_body || known ? new_object(program, RF_O_FUNCTION) : program->outside;
        function->result = rf_points_node(program->points);
        function->varargs = rf_points_node(program->points);
        if (function->has_body || known)
            program->function_of_object[function->object] = i;
    }
    rf_program_find_wrappers(program);
    rf_points_listen(program->points, outside(program), heard_outside, program);
    for (uint32_t i = 0; i < program->function_count; i++)
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(program->functions[i].value); block;
             block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef at = LLVMGetFirstInstruction(block); at; at = LLVMGetNextInstruction(at))
                gather_instruction(program, i, at);
    /* The system gives main() its arguments: lists of strings, which nobody else knows of. */
    LLVMValueRef first = LLVMGetNamedFunction(program->module, "main");
    rf_object arguments = new_memory(program, RF_O_GLOBAL);
    rf_points_add(program->points, rf_points_kept(program->points, rf_points_anywhere(program->points, arguments)),
                  rf_points_anywhere(program->points, arguments));
    for (unsigned i = 0; first && i < LLVMCountParams(first); i++)
        rf_points_add(program->points, node_of(program, LLVMGetParam(first, i)), arguments);
    rf_points_solve(program->points, progress);
}
