/* What a call means for who points where: of a function with a body, of one that static/libc.def knows, of any other; and of threads. See
 * static/gather.h. */
#include <string.h>

#include "static/gather.h"
#include "trace/grow.h"

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
    return index < LLVMCountParams(value) ? rf_ir_node_of(program, LLVMGetParam(value, index))
                                          : program->functions[function].varargs;
}

/* Everything that it knows of may go to, and come from, code that we do not see. */
void rf_ir_call_from_outside(struct rf_program_ir *program, uint32_t function)
{
    struct rf_function *at = &program->functions[function];
    if (at->called_from_outside)
        return;
    at->called_from_outside = true;
    for (unsigned i = 0; i < LLVMCountParams(at->value); i++)
        rf_points_copy(program->points, parameter(program, function, i), rf_ir_outside(program));
    rf_points_copy(program->points, at->varargs, rf_ir_outside(program));
    rf_ir_give_away(program, at->result);
}

void rf_ir_give_away(struct rf_program_ir *program, rf_node node)
{
    rf_points_copy(program->points, rf_ir_given(program), node);
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

rf_node rf_ir_shifted(struct rf_program_ir *program, rf_node pointer)
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
        rf_points_load(program->points, between, known ? moved(program, from, at) : rf_ir_shifted(program, from));
        rf_points_store(program->points, known ? moved(program, to, at) : rf_ir_shifted(program, to), between);
    }
}

/* A value that is loaded or stored may be several words. */
void rf_ir_load_or_store(struct rf_program_ir *program, bool load, LLVMTypeRef type, rf_node value, rf_node pointer)
{
    uint64_t size = LLVMStoreSizeOfType(LLVMGetModuleDataLayout(program->module), type);
    bool few = size <= 8 * MOST_WORDS;
    for (uint32_t at = 0; at < (few ? size : 1); at += 8) {
        rf_node there = few ? moved(program, pointer, at) : rf_ir_shifted(program, pointer);
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

bool rf_ir_is_known(const char *name)
{
    return known_as(name) != NULL;
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
                rf_ir_add_origin(program, object, at);
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
        rf_ir_give_away(program, rf_ir_node_of(program, argument));
        if (LLVMGetTypeKind(LLVMTypeOf(argument)) == LLVMPointerTypeKind)
            rf_ir_add_access(program, caller, instruction, argument, NULL, true, true, false);
    }
    rf_points_copy(program->points, rf_ir_node_of(program, instruction), rf_ir_outside(program));
    rf_ir_add_origin(program, 0, instruction);
}

/* A call whose callees come to be known as its function's node grows. */
struct pending {
    struct rf_program_ir *program;
    uint32_t call;
    bool thread,
        back; /* a new thread's function, with one argument; a function that libc calls back, with any of the arguments */
    rf_node argument; /* of these two */
    bool outside;     /* it may be any function that was given to code outside */
};

/* A structure that is passed by value: the caller says where it is, and the function gets the address of a copy on its own stack. What it
 * finds among unnamed arguments is the content itself. */
static void pass_by_value(struct rf_program_ir *program, uint32_t function, unsigned index, rf_node argument)
{
    rf_node to = parameter(program, function, index);
    if (index >= LLVMCountParams(program->functions[function].value)) {
        rf_points_load(program->points, to, rf_ir_shifted(program, argument));
        return;
    }
    rf_points_add(program->points, to, rf_ir_new_memory(program, RF_O_LOCAL));
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
        rf_node argument = rf_ir_node_of(program, LLVMGetOperand(instruction, i));
        rf_points_copy(program->points, parameter(program, function, i), argument);
        if (is_by_value(instruction, i))
            pass_by_value(program, function, i, argument);
    }
    if (!program->functions[function].wraps) {
        rf_points_copy(program->points, rf_ir_node_of(program, instruction), program->functions[function].result);
        return;
    }
    rf_object made = rf_ir_new_memory(program, RF_O_HEAP);
    rf_points_add(program->points, rf_ir_node_of(program, instruction), made);
    add_origins_in(program, made, program->functions[function].value, 0);
    for (unsigned i = 0; i < LLVMGetNumArgOperands(instruction) && i < 64; i++)
        if (program->functions[function].wrapped >> i &
            1) { /* it may be returned, or be what the new memory has its content from */
            rf_points_copy(program->points, rf_ir_node_of(program, instruction),
                           rf_ir_node_of(program, LLVMGetOperand(instruction, i)));
            copy_memory(program, rf_ir_node_of(program, instruction), rf_ir_node_of(program, LLVMGetOperand(instruction, i)),
                        NULL);
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
    if (rf_program_kind(program, object) == RF_O_OUTSIDE && !pending->outside) {
        LLVMValueRef instruction = program->calls[pending->call].instruction;
        pending->outside = true;
        if (!pending->thread && !pending->back)
            call_outside(program, program->calls[pending->call].caller, instruction, LLVMGetNumArgOperands(instruction));
        rf_points_listen(program->points, rf_ir_given(program), heard_callee, pending);
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
            rf_ir_give_away(program, program->functions[function].result);
    }
}

static void call_by_pointer(struct rf_program_ir *program, uint32_t call, rf_node function, bool thread, bool back,
                            rf_node argument)
{
    struct pending *pending = rf_zeroed(1, sizeof *pending);
    *pending = (struct pending){ program, call, thread, back, argument, false };
    rf_points_listen(program->points, function, heard_callee, pending);
}

static void call_known(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction, unsigned count,
                       const struct known *known)
{
    size_t last = strlen(known->arguments) - 1;
    rf_node result = rf_ir_node_of(program, instruction);
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef argument = LLVMGetOperand(instruction, i);
        char what = known->arguments[i < last ? i : last];
        if (what == 'f') {
            rf_node any = rf_points_node(program->points);
            for (unsigned j = 0; j < count; j++) /* qsort() hands on what lies inside its array */
                rf_points_shift(program->points, any, rf_ir_node_of(program, LLVMGetOperand(instruction, j)));
            call_by_pointer(program, add_call(program, caller, instruction, false), rf_ir_node_of(program, argument), false,
                            true, any);
        } else if (what != '.' && LLVMGetTypeKind(LLVMTypeOf(argument)) == LLVMPointerTypeKind) {
            struct rf_access *access =
                rf_ir_add_access(program, caller, instruction, argument, NULL, what != 'w', what != 'r', false);
            if (access)
                access->silent = what == 's';
        }
    }
    if (strcmp(known->name, "mmap") == 0) /* it changes all of the memory, which others may know the address of */
        rf_ir_add_access(program, caller, instruction, instruction, NULL, false, true, false);
    if (strcmp(known->returns, "own") == 0) {
        static rf_object own[sizeof knowns / sizeof *knowns];
        rf_object *object = &own[known - knowns];
        if (!*object)
            *object = rf_ir_new_memory(program, RF_O_GLOBAL);
        rf_points_add(program->points, result, *object);
        rf_ir_add_access(program, caller, instruction, instruction, NULL, false, true, false);
    } else if (strcmp(known->returns, "new") == 0) {
        bool heap = allocates(known->name);
        rf_object made = rf_ir_new_memory(program, heap ? RF_O_HEAP : RF_O_LIBRARY);
        rf_points_add(program->points, result, made);
        rf_ir_add_origin(program, heap ? made : 0, instruction);
    } else if (known->returns[0] != '-') /* or what lies behind it: strchr() */
        rf_points_shift(program->points, result,
                        rf_ir_node_of(program, LLVMGetOperand(instruction, (unsigned)(known->returns[0] - '0'))));
    if (strcmp(known->returns, "new") != 0)
        rf_ir_add_origin(program, 0, instruction);
    if (strstr(known->name, "realloc")) {
        rf_points_copy(program->points, result, rf_ir_node_of(program, LLVMGetOperand(instruction, 0)));
        copy_memory(program, result, rf_ir_node_of(program, LLVMGetOperand(instruction, 0)), NULL);
    }
    if (strcmp(known->name, "memcpy") == 0 || strcmp(known->name, "memmove") == 0 || strcmp(known->name, "mempcpy") == 0)
        copy_memory(program, rf_ir_node_of(program, LLVMGetOperand(instruction, 0)),
                    rf_ir_node_of(program, LLVMGetOperand(instruction, 1)), LLVMGetOperand(instruction, 2));
}

static void make_thread(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction, unsigned function,
                        unsigned argument)
{
    uint32_t call = add_call(program, caller, instruction, true);
    call_by_pointer(program, call, rf_ir_node_of(program, LLVMGetOperand(instruction, function)), true, false,
                    rf_ir_node_of(program, LLVMGetOperand(instruction, argument)));
    program->given = rf_reserve(program->given, &program->given_capacity, program->given_count + 1, sizeof *program->given);
    program->given[program->given_count++] = rf_ir_node_of(program, LLVMGetOperand(instruction, argument));
    rf_ir_add_access(program, caller, instruction, LLVMGetOperand(instruction, 0), NULL, false, true, false);
}

/* True: it is an intrinsic, and has been dealt with. */
static bool intrinsic(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction, const char *name)
{
    if (!starts(name, "llvm."))
        return false;
    rf_node result = rf_ir_node_of(program, instruction);
    if (starts(name, "llvm.memcpy") || starts(name, "llvm.memmove")) {
        LLVMValueRef to = LLVMGetOperand(instruction, 0), from = LLVMGetOperand(instruction, 1);
        copy_memory(program, rf_ir_node_of(program, to), rf_ir_node_of(program, from), LLVMGetOperand(instruction, 2));
        rf_ir_add_access(program, caller, instruction, to, NULL, false, true, false);
        rf_ir_add_access(program, caller, instruction, from, NULL, true, false, false);
    } else if (starts(name, "llvm.memset")) {
        rf_ir_add_access(program, caller, instruction, LLVMGetOperand(instruction, 0), NULL, false, true, false);
    } else if (strcmp(name, "llvm.va_start") == 0) {
        rf_object list = rf_ir_new_object(program, RF_O_VARARGS);
        rf_node pointer = rf_points_node(program->points);
        rf_points_copy(program->points, rf_points_kept(program->points, list), program->functions[caller].varargs);
        rf_points_add(program->points, pointer, list);
        rf_points_store(program->points, rf_ir_shifted(program, rf_ir_node_of(program, LLVMGetOperand(instruction, 0))),
                        pointer);
    } else if (strcmp(name, "llvm.va_copy") == 0) {
        copy_memory(program, rf_ir_node_of(program, LLVMGetOperand(instruction, 0)),
                    rf_ir_node_of(program, LLVMGetOperand(instruction, 1)), NULL);
    } else if (rf_ir_may_point(LLVMTypeOf(instruction))) {
        /* Arithmetic, launder.invariant.group and their like: what comes out went in. */
        for (unsigned i = 0; i < LLVMGetNumArgOperands(instruction); i++)
            rf_points_shift(program->points, result, rf_ir_node_of(program, LLVMGetOperand(instruction, i)));
    }
    return true;
}

/* What a thread keeps for itself under a key: one node for all keys and threads. It may be what a destructor is called with. */
static bool call_for_specific(struct rf_program_ir *program, LLVMValueRef instruction, const char *name, unsigned count)
{
    bool posix = starts(name, "pthread_");
    name += posix ? strlen("pthread_") : 0;
    if (strcmp(name, posix ? "getspecific" : "tss_get") == 0) {
        rf_points_copy(program->points, rf_ir_node_of(program, instruction), program->specific);
    } else if (strcmp(name, posix ? "setspecific" : "tss_set") == 0 && count == 2) {
        rf_points_copy(program->points, program->specific, rf_ir_node_of(program, LLVMGetOperand(instruction, 1)));
    } else {
        if (strcmp(name, posix ? "key_create" : "tss_create") == 0 && count == 2 &&
            !LLVMIsNull(LLVMGetOperand(instruction, 1)))
            rf_ir_give_away(program, program->specific);
        return false;
    }
    return true;
}

void rf_ir_gather_call(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction)
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
        call_by_pointer(program, add_call(program, caller, instruction, false), rf_ir_node_of(program, callee), false, false,
                        0);
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
        rf_points_store(program->points, rf_ir_node_of(program, LLVMGetOperand(instruction, 1)), rf_ir_outside(program));
        if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(instruction, 1))) == LLVMPointerTypeKind)
            rf_ir_add_access(program, caller, instruction, LLVMGetOperand(instruction, 1), NULL, false, true, false);
    } else if (known)
        call_known(program, caller, instruction, count, known);
    else if (!call_for_specific(program, instruction, name, count))
        call_outside(program, caller, instruction, count);
}
