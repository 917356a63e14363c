/* Lines of the source, what is accessed there, and where memory is made. See static/gather.h. */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Target.h>

#include "static/gather.h"
#include "trace/grow.h"

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
    for (LLVMOpcode opcode; (opcode = rf_ir_opcode_of(from)) == LLVMGetElementPtr || opcode == LLVMBitCast;) {
        if (opcode == LLVMGetElementPtr && !rf_ir_constant_offset(layout, from, &offset))
            return pointer;
        from = LLVMGetOperand(from, 0);
    }
    *begin = offset;
    if (type)
        *end = offset + LLVMStoreSizeOfType(layout, type);
    return from;
}

/* type: of what is accessed, NULL if it is more than one value. Returns NULL if its line is not known. */
struct rf_access *rf_ir_add_access(struct rf_program_ir *program, uint32_t function, LLVMValueRef instruction,
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
    access->pointer = rf_ir_node_of(program, from);
    return access;
}

void rf_ir_add_origin(struct rf_program_ir *program, rf_object object, LLVMValueRef instruction)
{
    program->origins =
        rf_reserve(program->origins, &program->origin_capacity, program->origin_count + 1, sizeof *program->origins);
    program->origins[program->origin_count++] = (struct rf_origin){ object, site_of(program, instruction) };
}

/* ---- the order of sites ---- */

static const struct rf_site_line *all_sites;

static int by_place(const void *a, const void *b)
{
    const struct rf_site_line *one = &all_sites[*(const uint32_t *)a], *other = &all_sites[*(const uint32_t *)b];
    int order = strcmp(one->file, other->file);
    return order ? order : one->line < other->line ? -1 : one->line > other->line;
}

void rf_ir_order_sites(struct rf_program_ir *program)
{
    uint32_t *places = rf_zeroed(program->site_count, sizeof *places), *rank = rf_zeroed(program->site_count, sizeof *rank);
    struct rf_site_line *sites = rf_zeroed(program->site_count, sizeof *sites);
    size_t count = 0;
    for (uint32_t i = 0; i < program->site_count; i++)
        places[i] = i;
    all_sites = program->sites;
    if (program->site_count)
        qsort(places, program->site_count, sizeof *places, by_place);
    for (size_t i = 0; i < program->site_count; i++) {
        if (!i || by_place(&places[i], &places[i - 1]) != 0)
            sites[count++] = program->sites[places[i]];
        rank[places[i]] = (uint32_t)count - 1;
    }
    for (size_t i = 0; i < program->access_count; i++)
        program->accesses[i].site = rank[program->accesses[i].site];
    for (size_t i = 0; i < program->origin_count; i++)
        if (program->origins[i].site != UINT32_MAX)
            program->origins[i].site = rank[program->origins[i].site];
    free(program->sites);
    program->sites = sites;
    program->site_count = count;
    free(places);
    free(rank);
}
