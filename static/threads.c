/* See static/threads.h. */
#include "static/threads.h"

#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

/* ---- sets of instructions and blocks ---- */

struct pointers {
    const void **entries;
    size_t capacity, count;
};

static size_t place(const struct pointers *set, const void *pointer)
{
    size_t at = (size_t)((uintptr_t)pointer >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (set->capacity - 1);
    while (set->entries[at] && set->entries[at] != pointer)
        at = (at + 1) & (set->capacity - 1);
    return at;
}

static bool has(const struct pointers *set, const void *pointer)
{
    return set->capacity && set->entries[place(set, pointer)];
}

static bool add(struct pointers *set, const void *pointer)
{
    if (2 * (set->count + 1) > set->capacity) {
        struct pointers larger = { NULL, set->capacity ? 2 * set->capacity : 1024, set->count };
        larger.entries = rf_zeroed(larger.capacity, sizeof *larger.entries);
        for (size_t i = 0; i < set->capacity; i++)
            if (set->entries[i])
                larger.entries[place(&larger, set->entries[i])] = set->entries[i];
        free(set->entries);
        *set = larger;
    }
    size_t at = place(set, pointer);
    if (set->entries[at])
        return false;
    set->entries[at] = pointer;
    set->count++;
    return true;
}

/* ---- once, or more often ---- */

struct finder {
    const struct rf_program_ir *program;
    uint32_t main;
    uint32_t *callers;     /* by function: how many calls may reach it */
    uint32_t *only_caller; /* the call, if there is one */
    uint8_t *once;         /* 0: not known, 1: being asked, 2: no, 3: yes */
    bool **reached;        /* by root, by function */
    uint32_t makers[RF_ROOTS], maker[RF_ROOTS];
    uint32_t root_function[RF_ROOTS];
    unsigned roots;
    struct pointers seen_blocks;
    LLVMBasicBlockRef *stack;
    size_t stack_capacity;
};

static bool in_loop(struct finder *finder, LLVMValueRef instruction)
{
    LLVMBasicBlockRef home = LLVMGetInstructionParent(instruction);
    struct pointers seen = { NULL, 0, 0 };
    size_t depth = 0;
    bool found = false;
    finder->stack = rf_reserve(finder->stack, &finder->stack_capacity, 1, sizeof *finder->stack);
    finder->stack[depth++] = home;
    while (depth && !found) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(finder->stack[--depth]);
        for (unsigned i = 0; i < LLVMGetNumSuccessors(end) && !found; i++) {
            LLVMBasicBlockRef next = LLVMGetSuccessor(end, i);
            found = next == home;
            if (add(&seen, next)) {
                finder->stack = rf_reserve(finder->stack, &finder->stack_capacity, depth + 1, sizeof *finder->stack);
                finder->stack[depth++] = next;
            }
        }
    }
    free(seen.entries);
    return found;
}

static unsigned root_of(const struct finder *finder, uint32_t function)
{
    for (unsigned i = 1; i < finder->roots; i++)
        if (finder->root_function[i] == function)
            return i;
    return 0;
}

static bool runs_once(struct finder *finder, uint32_t function)
{
    uint8_t *known = &finder->once[function];
    if (*known)
        return *known == 3;
    *known = 1; /* who calls itself runs more than once */
    const struct rf_function *at = &finder->program->functions[function];
    bool yes = !at->called_from_outside;
    unsigned root = root_of(finder, function);
    if (function == finder->main)
        yes &= finder->callers[function] == 0;
    else if (root)
        yes &= finder->callers[function] == 0 && finder->makers[root] == 1;
    else
        yes &= finder->callers[function] == 1;
    if (yes && function != finder->main) {
        const struct rf_call *call = &finder->program->calls[root ? finder->maker[root] : finder->only_caller[function]];
        yes = !in_loop(finder, call->instruction) && runs_once(finder, call->caller);
    }
    *known = yes ? 3 : 2;
    return yes;
}

/* ---- roots ---- */

static void reach_from(struct finder *finder, bool *reached, uint32_t function)
{
    if (reached[function])
        return;
    reached[function] = true;
    const struct rf_function *at = &finder->program->functions[function];
    for (size_t i = 0; i < at->call_count; i++) {
        const struct rf_call *call = &finder->program->calls[at->calls[i]];
        for (size_t j = 0; !call->makes_thread && j < call->callee_count; j++)
            reach_from(finder, reached, call->callees[j]);
    }
}

static unsigned add_root(struct finder *finder, uint32_t function)
{
    unsigned root = root_of(finder, function);
    if (root)
        return root;
    if (finder->roots == RF_ROOTS - 1) /* the last one is for those outside, and for all that have no place */
        return RF_ROOTS - 1;
    finder->root_function[finder->roots] = function;
    return finder->roots++;
}

static void constructors(struct finder *finder, bool *reached)
{
    LLVMValueRef list = LLVMGetNamedGlobal(finder->program->module, "llvm.global_ctors");
    LLVMValueRef all = list ? LLVMGetInitializer(list) : NULL;
    for (int i = 0; all && i < LLVMGetNumOperands(all); i++) {
        LLVMValueRef entry = LLVMGetOperand(all, (unsigned)i);
        uint32_t function =
            LLVMGetNumOperands(entry) > 1 ? rf_program_function(finder->program, LLVMGetOperand(entry, 1)) : UINT32_MAX;
        if (function != UINT32_MAX)
            reach_from(finder, reached, function);
    }
}

static void find_roots(struct finder *finder, uint64_t *several)
{
    const struct rf_program_ir *program = finder->program;
    finder->roots = 1;
    for (uint32_t i = 0; i < program->call_count; i++) {
        const struct rf_call *call = &program->calls[i];
        for (size_t j = 0; j < call->callee_count; j++) {
            if (!call->makes_thread) {
                finder->callers[call->callees[j]]++;
                finder->only_caller[call->callees[j]] = i;
                continue;
            }
            unsigned root = add_root(finder, call->callees[j]);
            finder->makers[root]++;
            finder->maker[root] = i;
        }
    }
    for (unsigned i = 0; i < RF_ROOTS; i++)
        finder->reached[i] = rf_zeroed(program->function_count, sizeof **finder->reached);
    if (finder->main != UINT32_MAX)
        reach_from(finder, finder->reached[0], finder->main);
    constructors(finder, finder->reached[0]);
    *several = UINT64_C(1) << (RF_ROOTS - 1);
    for (uint32_t i = 0; i < program->call_count; i++)
        for (size_t j = 0; program->calls[i].makes_thread && j < program->calls[i].callee_count; j++) {
            unsigned root = add_root(finder, program->calls[i].callees[j]);
            reach_from(finder, finder->reached[root], program->calls[i].callees[j]);
        }
    for (uint32_t i = 0; i < program->function_count; i++)
        if (program->functions[i].called_from_outside)
            reach_from(finder, finder->reached[RF_ROOTS - 1], i);
    for (unsigned i = 1; i < finder->roots; i++)
        if (!runs_once(finder, finder->root_function[i]))
            *several |= UINT64_C(1) << i;
}

/* ---- after the making, before the join ---- */

/* The variable of a thread's handle, if nothing but its making and joins use it. */
static bool is_join(LLVMValueRef instruction, LLVMValueRef handle)
{
    size_t length;
    LLVMValueRef callee = LLVMIsACallInst(instruction) ? LLVMGetCalledValue(instruction) : NULL;
    if (!callee || !LLVMIsAFunction(callee))
        return false;
    const char *name = LLVMGetValueName2(callee, &length);
    if (strcmp(name, "pthread_join") != 0 && strcmp(name, "thrd_join") != 0)
        return false;
    LLVMValueRef joined = LLVMGetOperand(instruction, 0);
    return LLVMIsALoadInst(joined) && LLVMGetOperand(joined, 0) == handle;
}

static bool is_annotation(LLVMValueRef user)
{
    size_t length;
    if (LLVMIsABitCastInst(user)) { /* of a lifetime's begin and end */
        for (LLVMUseRef use = LLVMGetFirstUse(user); use; use = LLVMGetNextUse(use))
            if (!is_annotation(LLVMGetUser(use)))
                return false;
        return true;
    }
    return LLVMIsACallInst(user) && LLVMIsAFunction(LLVMGetCalledValue(user)) &&
           strncmp(LLVMGetValueName2(LLVMGetCalledValue(user), &length), "llvm.lifetime.", 14) == 0;
}

static LLVMValueRef handle_of(const struct rf_call *call)
{
    LLVMValueRef handle = LLVMGetOperand(call->instruction, 0);
    if (!LLVMIsAAllocaInst(handle) && !LLVMIsAGlobalVariable(handle))
        return NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(handle); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (user != call->instruction && !LLVMIsALoadInst(user) && !is_annotation(user))
            return NULL;
    }
    return handle;
}

struct walk {
    struct finder *finder;
    LLVMValueRef handle; /* NULL: no join ends it */
    struct pointers marked, blocks;
    bool *whole; /* by function: all of it, called after the making */
    struct {
        LLVMBasicBlockRef block;
        LLVMValueRef from;
        uint32_t function;
    } * work;
    size_t count, capacity;
};

static void mark_whole(struct walk *walk, uint32_t function)
{
    if (walk->whole[function])
        return;
    walk->whole[function] = true;
    const struct rf_function *at = &walk->finder->program->functions[function];
    for (size_t i = 0; i < at->call_count; i++) {
        const struct rf_call *call = &walk->finder->program->calls[at->calls[i]];
        for (size_t j = 0; !call->makes_thread && j < call->callee_count; j++)
            mark_whole(walk, call->callees[j]);
    }
}

static void push(struct walk *walk, LLVMBasicBlockRef block, LLVMValueRef from, uint32_t function)
{
    walk->work = rf_reserve(walk->work, &walk->capacity, walk->count + 1, sizeof *walk->work);
    walk->work[walk->count].block = block;
    walk->work[walk->count].from = from;
    walk->work[walk->count++].function = function;
}

/* Behind every call that may have led here. */
static void push_callers(struct walk *walk, uint32_t function)
{
    const struct rf_program_ir *program = walk->finder->program;
    for (size_t i = 0; i < program->call_count; i++) {
        const struct rf_call *call = &program->calls[i];
        for (size_t j = 0; !call->makes_thread && j < call->callee_count; j++)
            if (call->callees[j] == function) {
                LLVMBasicBlockRef block = LLVMGetInstructionParent(call->instruction);
                LLVMValueRef next = LLVMGetNextInstruction(call->instruction);
                if (next) {
                    push(walk, block, next, call->caller);
                    continue;
                }
                for (unsigned k = 0; k < LLVMGetNumSuccessors(call->instruction); k++) /* an invoke */
                    push(walk, LLVMGetSuccessor(call->instruction, k), NULL, call->caller);
            }
    }
}

/* One block from an instruction on; the callees of its calls run after the making too. */
static void walk_block(struct walk *walk, LLVMBasicBlockRef block, LLVMValueRef from, uint32_t function)
{
    const struct rf_program_ir *program = walk->finder->program;
    if (!from && !add(&walk->blocks, block))
        return;
    bool joined = false;
    for (LLVMValueRef at = from ? from : LLVMGetFirstInstruction(block); at && !joined; at = LLVMGetNextInstruction(at)) {
        if (!add(&walk->marked, at) && from)
            return; /* from here on it was walked before */
        joined = walk->handle && is_join(at, walk->handle);
        if (LLVMGetInstructionOpcode(at) == LLVMRet || LLVMGetInstructionOpcode(at) == LLVMResume)
            push_callers(walk, function);
    }
    const struct rf_function *in = &program->functions[function];
    for (size_t i = 0; i < in->call_count; i++) {
        const struct rf_call *call = &program->calls[in->calls[i]];
        if (call->makes_thread || !has(&walk->marked, call->instruction))
            continue;
        for (size_t j = 0; j < call->callee_count; j++)
            mark_whole(walk, call->callees[j]);
    }
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    for (unsigned i = 0; !joined && i < LLVMGetNumSuccessors(end); i++)
        push(walk, LLVMGetSuccessor(end, i), NULL, function);
}

static void walk_from(struct walk *walk, const struct rf_call *maker)
{
    LLVMValueRef next = LLVMGetNextInstruction(maker->instruction);
    if (next)
        push(walk, LLVMGetInstructionParent(maker->instruction), next, maker->caller);
    for (unsigned i = 0; !next && i < LLVMGetNumSuccessors(maker->instruction); i++)
        push(walk, LLVMGetSuccessor(maker->instruction, i), NULL, maker->caller);
    while (walk->count) {
        walk->count--;
        walk_block(walk, walk->work[walk->count].block, walk->work[walk->count].from, walk->work[walk->count].function);
    }
}

/* What of the main thread may run beside `root`. Threads that others make come after any that the main one makes. */
static void find_beside(struct finder *finder, struct rf_threads *threads, unsigned root)
{
    const struct rf_program_ir *program = finder->program;
    struct walk walk = { .finder = finder };
    bool by_others = root == RF_ROOTS - 1, single = !(threads->several >> root & 1);
    walk.whole = rf_zeroed(program->function_count, sizeof *walk.whole);
    for (size_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < program->call_count; i++) {
            const struct rf_call *call = &program->calls[i];
            bool ours = false;
            for (size_t j = 0; call->makes_thread && j < call->callee_count; j++)
                ours |= add_root(finder, call->callees[j]) == root;
            if (pass == 0 && ours)
                for (unsigned k = 1; k < RF_ROOTS; k++)
                    by_others |= finder->reached[k][call->caller];
            if (!call->makes_thread || !finder->reached[0][call->caller] || pass == 0 || (!ours && !by_others))
                continue;
            walk.handle = ours && single && !by_others ? handle_of(call) : NULL;
            walk_from(&walk, call);
        }
    for (uint32_t i = 0; i < program->access_count; i++) {
        const struct rf_access *access = &program->accesses[i];
        if (!finder->reached[0][access->function])
            continue;
        /* Code outside may have threads of its own, from the beginning. */
        if (root == RF_ROOTS - 1 || walk.whole[access->function] || has(&walk.marked, access->instruction))
            threads->main_beside[i] |= UINT64_C(1) << root;
    }
    free(walk.whole);
    free(walk.marked.entries);
    free(walk.blocks.entries);
    free(walk.work);
}

void rf_threads_find(struct rf_threads *threads, const struct rf_program_ir *program)
{
    bool *reached[RF_ROOTS];
    struct finder finder = { .program = program, .reached = reached };
    LLVMValueRef first = LLVMGetNamedFunction(program->module, "main");
    memset(threads, 0, sizeof *threads);
    finder.main = first ? rf_program_function(program, first) : UINT32_MAX;
    finder.callers = rf_zeroed(program->function_count, sizeof *finder.callers);
    finder.only_caller = rf_zeroed(program->function_count, sizeof *finder.only_caller);
    finder.once = rf_zeroed(program->function_count, sizeof *finder.once);
    find_roots(&finder, &threads->several);
    threads->in = rf_zeroed(program->access_count, sizeof *threads->in);
    threads->main_beside = rf_zeroed(program->access_count, sizeof *threads->main_beside);
    for (uint32_t i = 0; i < program->access_count; i++)
        for (unsigned root = 1; root < RF_ROOTS; root++)
            if (reached[root][program->accesses[i].function])
                threads->in[i] |= UINT64_C(1) << root;
    for (unsigned root = 1; root < finder.roots; root++)
        find_beside(&finder, threads, root);
    find_beside(&finder, threads, RF_ROOTS - 1);
    threads->count = finder.roots;
    for (unsigned i = 0; i < RF_ROOTS; i++)
        free(reached[i]);
    free(finder.callers);
    free(finder.only_caller);
    free(finder.once);
    free(finder.stack);
}
