/* From addresses in the program to names, files and lines: ELF and DWARF through elfutils.
 *
 * 1. Modules are remembered for ever, the newest first: a stack may lie in a library that was unloaded since.
 * 2. A file is opened when the first address in it is looked for, and used only if it is the one that was loaded: its build id is the
 *    record's, where both have one. The program's own file may be gone from its path; then /proc/PID/exe has it.
 * 3. Nothing is fetched from a network. Separate debug files are found where Debian puts them.
 * 4. All strings live as long as the struct rf_symbolizer.
 */
#ifndef RF_REPORT_SYMBOLS_H
#define RF_REPORT_SYMBOLS_H

#include "report/record.h"

struct rf_symbol {
    const char *function; /* demangled; NULL: not known */
    const char *file;     /* NULL: not known */
    uint32_t line, column;
    const char *module; /* path, NULL: in no module */
    const char *build_id;
    uint64_t pc, offset;
    bool inlined; /* its caller, the next frame, is the same place in the machine code */
    bool runtime; /* a function of ours that took the place of libc's */
};

struct rf_symbolizer;

struct rf_symbolizer *rf_symbolizer_new(int32_t pid);
void rf_symbolizer_free(struct rf_symbolizer *symbols);
void rf_symbolizer_modules(struct rf_symbolizer *symbols, const struct rf_rec_module *modules, uint32_t count);
/* Fills the frames of a stack: inlined calls too; without the runtime's own insides, and without what runs before main() or a thread's
 * first function. */
void rf_symbolizer_stack(struct rf_symbolizer *symbols, struct rf_stack *stack);
/* File, line and column of the instruction before `pc`, as the first frame of a stack would have them: much faster, since no function is
 * looked for. False: not known. */
bool rf_symbolizer_line(struct rf_symbolizer *symbols, uint64_t pc, struct rf_symbol *symbol);
/* If the address is in a variable of a module, the location becomes that variable. */
bool rf_symbolizer_variable(struct rf_symbolizer *symbols, uint64_t addr, struct rf_rec_location *location);
/* All stacks of a record, and its location. */
void rf_symbolizer_record(struct rf_symbolizer *symbols, struct rf_record *record);

/* The first frame that is the program's own; the first of all if there is none; NULL for an empty stack. */
const struct rf_symbol *rf_stack_top(const struct rf_stack *stack);

#endif
