/* The parts of the walk over a program's instructions (static/gather.c): values, accesses and calls, each in a file of its name.
 *
 * 1. All of it adds to a struct rf_program_ir and its constraints of static/points.h; nothing is solved before all was walked over.
 * 2. One thread, one program: the table of values is static/values.c's own.
 */
#ifndef RF_STATIC_GATHER_H
#define RF_STATIC_GATHER_H

#include <llvm-c/Target.h>

#include "static/program.h"

/* -- static/values.c -- */

rf_object rf_ir_new_object(struct rf_program_ir *program, enum rf_object_kind kind);
rf_object rf_ir_new_memory(struct rf_program_ir *program, enum rf_object_kind kind);
rf_object rf_ir_new_outside(struct rf_program_ir *program);
/* What code that is not seen hands out; and what was given to it. */
rf_node rf_ir_outside(const struct rf_program_ir *program);
rf_node rf_ir_given(const struct rf_program_ir *program);
rf_node rf_ir_node_of(struct rf_program_ir *program, LLVMValueRef value);
/* How far behind its first operand an address lies; false: it depends on the run, or lies before it. */
bool rf_ir_constant_offset(LLVMTargetDataRef layout, LLVMValueRef address, uint64_t *offset);
LLVMOpcode rf_ir_opcode_of(LLVMValueRef value);
/* The node may point to whatever the operands of the value do. */
void rf_ir_pass_through(struct rf_program_ir *program, LLVMValueRef value, rf_node node);
/* Is the result of arithmetic no pointer, whatever went in? */
bool rf_ir_is_number(LLVMValueRef instruction);
bool rf_ir_may_point(LLVMTypeRef type);

/* -- static/accesses.c -- */

/* type: of what is accessed, NULL if it is more than one value. NULL: its line is not known. */
struct rf_access *rf_ir_add_access(struct rf_program_ir *program, uint32_t function, LLVMValueRef instruction,
                                   LLVMValueRef pointer, LLVMTypeRef type, bool reads, bool writes, bool atomic);
/* In the order of the source, whatever the order in which sites were met; a site that was met twice is one. */
void rf_ir_order_sites(struct rf_program_ir *program);
void rf_ir_add_origin(struct rf_program_ir *program, rf_object object, LLVMValueRef instruction);

/* -- static/calls.c -- */

void rf_ir_call_from_outside(struct rf_program_ir *program, uint32_t function);
/* Code that is not seen may reach it from now on. */
void rf_ir_give_away(struct rf_program_ir *program, rf_node node);
/* Points to the same objects, anywhere in them. */
rf_node rf_ir_shifted(struct rf_program_ir *program, rf_node pointer);
void rf_ir_load_or_store(struct rf_program_ir *program, bool load, LLVMTypeRef type, rf_node value, rf_node pointer);
void rf_ir_gather_call(struct rf_program_ir *program, uint32_t caller, LLVMValueRef instruction);
/* Does static/libc.def have it? */
bool rf_ir_is_known(const char *name);

#endif
