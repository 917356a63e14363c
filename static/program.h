/* A whole program in LLVM's form, and what of it the analysis needs: objects, accesses, calls, threads.
 *
 * 1. Values of pointer size or more may hold pointers, integers too; smaller ones, and floating point, do not. A pointer that is taken to
 *    pieces and put together from them is lost (doc/static.md).
 * 2. What a function without a body may do: read, change, keep and call all it can reach from its arguments and from what was ever
 *    given to such a function; static/libc.def says of some that they do less.
 * 3. Of an access a constant distance behind a pointer to a known place of an object (static/points.h, 3), the bytes of the object are
 *    known. So two fields of a structure are not one.
 * 4. A function that returns new memory and does nothing else with it makes another object for each of its calls (static/wrappers.c).
 * 5. An access is one instruction, or a call of a libc function that the runtime sees as one. Its site is its line in the source.
 */
#ifndef RF_STATIC_PROGRAM_H
#define RF_STATIC_PROGRAM_H

#include <llvm-c/Core.h>

#include "static/points.h"

enum rf_object_kind {
    RF_O_GLOBAL,
    RF_O_CONSTANT,
    RF_O_THREAD_LOCAL,
    RF_O_LOCAL,
    RF_O_HEAP,
    RF_O_LIBRARY,
    RF_O_FUNCTION,
    RF_O_OUTSIDE,
    RF_O_VARARGS
};

struct rf_call {
    LLVMValueRef instruction;
    uint32_t caller; /* a function */
    uint32_t *callees;
    size_t callee_count, callee_capacity;
    bool makes_thread; /* pthread_create or thrd_create: the callees run in the new thread */
};

struct rf_access {
    LLVMValueRef instruction;
    uint32_t function, site;
    rf_node pointer;
    bool reads, writes, atomic;
    bool silent; /* of a stream, by a function that accesses nothing else (static/libc.def) */
    rf_node stored;      /* the value that a store writes; 0: it is no pointer, or a call writes what it likes */
    uint64_t begin, end; /* the bytes behind the pointer; of an object to whose inside it points, any */
};

struct rf_function {
    LLVMValueRef value;
    rf_object object;
    rf_node result, varargs;
    bool has_body, called_from_outside; /* by code that we do not see, in any thread */
    bool wraps;                         /* invariant 4 */
    uint64_t wrapped;                   /* parameters that it may return besides, a bit for each */
    uint32_t *calls;                    /* those in it */
    size_t call_count, call_capacity;
};

/* A call that makes memory: one of malloc's kin at this site made the object, or a library's function something that is no object of the
 * program. */
struct rf_origin {
    rf_object object; /* 0: a library's */
    uint32_t site;    /* UINT32_MAX: not known */
};

struct rf_site_line {
    char *file;
    unsigned line;
};

struct rf_program_ir {
    LLVMModuleRef module;
    struct rf_points *points;
    struct rf_function *functions;
    size_t function_count, function_capacity;
    struct rf_call *calls;
    size_t call_count, call_capacity;
    struct rf_access *accesses;
    size_t access_count, access_capacity;
    struct rf_site_line *sites;
    size_t site_count, site_capacity;
    enum rf_object_kind *kinds; /* by object; of a place, rf_program_kind() */
    size_t kind_capacity;
    uint32_t *function_of_object; /* of RF_O_FUNCTION */
    size_t function_of_object_capacity;
    struct rf_origin *origins;
    size_t origin_count, origin_capacity;
    rf_object outside;
    rf_node specific; /* what threads keep under keys */
    rf_node *given;   /* what threads are made with */
    size_t given_count, given_capacity;
    uint64_t without_line; /* accesses whose line is not known */
};

/* Gathers and solves. */
void rf_program_analyze(struct rf_program_ir *program, void (*progress)(uint64_t, uint64_t));

/* Sets `wraps` of functions. */
void rf_program_find_wrappers(struct rf_program_ir *program);
bool rf_program_makes_memory(const char *name); /* a function of libc, as static/libc.def has it */

static inline enum rf_object_kind rf_program_kind(const struct rf_program_ir *program, rf_object object)
{
    return program->kinds[rf_points_whole(program->points, object)];
}

/* By what the module says; UINT32_MAX: no function of the program. */
uint32_t rf_program_function(const struct rf_program_ir *program, LLVMValueRef value);

#endif
