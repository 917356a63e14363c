/* Copies that gcc has no checks for, and nobody looks at: they get some as any other access.
 *  - memcpy(), memset() and their like of a size that is known. The functions of these names have checks, but later gcc makes moves of the calls.
 *  - Structures that a call is given by value, or whose value it returns. These are no statements of their own.
 *
 * 1. A check that the function makes as well, where it is called after all, repeats one of the same epoch: it costs little and tells nothing new.
 * 2. memcmp() compares all bytes that it is told to, says the language: moves do, and may not stop at the first that differ.
 * 3. What is only the function's own is not checked, as gcc's own pass does it: a variable whose address nobody else has, a constant.
 * 4. A result is written when the call has come back, says the language: what it did in between may have ordered the write.
 */
#include "plugin/check.h"

/* Where a call has what it writes to, reads from, and how many bytes; -1: nowhere. */
struct copy {
    int to, from, also_from, size;
};

static bool copy_of(gimple *statement, copy *copy)
{
    tree function = is_gimple_call(statement) ? gimple_call_fndecl(statement) : NULL_TREE;
    if (!function || !gimple_call_builtin_p(statement, BUILT_IN_NORMAL))
        return false;
    switch (DECL_FUNCTION_CODE(function)) {
    case BUILT_IN_MEMCPY:
    case BUILT_IN_MEMMOVE:
    case BUILT_IN_MEMPCPY:
    case BUILT_IN_MEMCPY_CHK:
    case BUILT_IN_MEMMOVE_CHK:
    case BUILT_IN_MEMPCPY_CHK: *copy = { 0, 1, -1, 2 }; return true;
    case BUILT_IN_BCOPY: *copy = { 1, 0, -1, 2 }; return true;
    case BUILT_IN_MEMSET:
    case BUILT_IN_MEMSET_CHK: *copy = { 0, -1, -1, 2 }; return true;
    case BUILT_IN_BZERO: *copy = { 0, -1, -1, 1 }; return true;
    case BUILT_IN_STRCPY:
    case BUILT_IN_STPCPY:
    case BUILT_IN_STRCPY_CHK:
    case BUILT_IN_STPCPY_CHK: *copy = { 0, 1, -1, -1 }; return true;
    case BUILT_IN_BCMP:
    case BUILT_IN_MEMCMP:
    case BUILT_IN_MEMCMP_EQ: *copy = { -1, 0, 1, 2 }; return true;
    default: return false;
    }
}

/* How many bytes; NULL_TREE: it is not known. */
static tree size_of(gimple *statement, const copy &copy)
{
    if (copy.size >= 0) {
        tree size = gimple_call_arg(statement, copy.size);
        return tree_fits_uhwi_p(size) && !integer_zerop(size) ? size : NULL_TREE;
    }
    tree length = c_strlen(gimple_call_arg(statement, copy.from), 1); /* without its end */
    return length && tree_fits_uhwi_p(length) ? build_int_cst(size_type_node, tree_to_uhwi(length) + 1) : NULL_TREE;
}

/* Invariant 3. */
static bool is_own(tree reference)
{
    tree base = get_base_address(reference);
    if (!base || TREE_CODE(base) == STRING_CST || CONSTANT_CLASS_P(base) || TREE_READONLY(base))
        return true;
    if (!DECL_P(base) || is_global_var(base))
        return false;
    pt_solution escaped;
    memset(&escaped, 0, sizeof escaped);
    escaped.escaped = 1;
    escaped.ipa_escaped = flag_ipa_pta != 0;
    return !pt_solution_includes(&escaped, base);
}

static void check_before(gimple_stmt_iterator *at, int argument, tree size, bool write)
{
    tree pointer = argument < 0 ? NULL_TREE : gimple_call_arg(gsi_stmt(*at), argument);
    if (pointer && !(TREE_CODE(pointer) == ADDR_EXPR && is_own(TREE_OPERAND(pointer, 0))))
        gsi_insert_before(at, rf_check_call(pointer, size, 1, write, gimple_location(gsi_stmt(*at))), GSI_SAME_STMT);
}

static void check_copy(gimple_stmt_iterator *at)
{
    copy copy;
    tree size = copy_of(gsi_stmt(*at), &copy) ? size_of(gsi_stmt(*at), copy) : NULL_TREE;
    if (!size)
        return;
    check_before(at, copy.from, size, false);
    check_before(at, copy.also_from, size, false);
    check_before(at, copy.to, size, true);
}

/* The check of a structure in memory; NULL: it needs none. */
static gimple_seq structure_check(tree structure, bool write, location_t place)
{
    if (!structure || is_gimple_reg_type(TREE_TYPE(structure)) || !(DECL_P(structure) || REFERENCE_CLASS_P(structure)) ||
        TREE_THIS_VOLATILE(structure) || !ADDR_SPACE_GENERIC_P(TYPE_ADDR_SPACE(TREE_TYPE(structure))) || is_own(structure))
        return NULL;
    tree size = TYPE_SIZE_UNIT(TREE_TYPE(structure));
    if (!size || !tree_fits_uhwi_p(size) || integer_zerop(size))
        return NULL;
    gimple_seq made = NULL;
    tree pointer = force_gimple_operand(build_fold_addr_expr(unshare_expr(structure)), &made, true, NULL_TREE);
    gimple_seq_add_stmt(&made, rf_check_call(pointer, size, 1, write, place));
    return made;
}

static void check_structures(gimple_stmt_iterator *at)
{
    gimple *call = gsi_stmt(*at);
    if (!is_gimple_call(call) || gimple_call_internal_p(call))
        return;
    for (unsigned i = 0; i < gimple_call_num_args(call); i++)
        if (gimple_seq made = structure_check(gimple_call_arg(call, i), false, gimple_location(call)))
            gsi_insert_seq_before(at, made, GSI_SAME_STMT);
    gimple_seq made = structure_check(gimple_call_lhs(call), true, gimple_location(call));
    if (!made)
        return;
    edge on = stmt_ends_bb_p(call) ? find_fallthru_edge(gimple_bb(call)->succs) : NULL; /* where exceptions leave it on another */
    if (on)
        gsi_insert_seq_on_edge_immediate(on, made);
    else if (!stmt_ends_bb_p(call))
        gsi_insert_seq_after(at, made, GSI_CONTINUE_LINKING);
}

void rf_check_copies(function *function)
{
    if (!sanitize_flags_p(SANITIZE_THREAD, function->decl))
        return;
    basic_block block;
    FOR_EACH_BB_FN (block, function)
        for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at); gsi_next(&at)) {
            check_copy(&at);
            check_structures(&at);
        }
}
