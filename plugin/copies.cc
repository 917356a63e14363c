/* Copies whose size is known: memcpy(), memset() and their like. gcc has no check for them, as the functions of these names have one; but later it
 * makes moves of the calls, which nobody looks at. So they get checks as any other access.
 *
 * 1. A check that the function makes as well, where it is called after all, repeats one of the same epoch: it costs little and tells nothing new.
 * 2. memcmp() compares all bytes that it is told to, says the language: moves do, and may not stop at the first that differ.
 * 3. What is only the function's own is not checked, as gcc's own pass does it: a variable whose address nobody else has, a constant.
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
static bool is_own(tree pointer)
{
    if (TREE_CODE(pointer) != ADDR_EXPR)
        return false;
    tree base = get_base_address(TREE_OPERAND(pointer, 0));
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
    if (pointer && !is_own(pointer))
        gsi_insert_before(at, rf_check_call(pointer, size, 1, write, gimple_location(gsi_stmt(*at))), GSI_SAME_STMT);
}

void rf_check_copies(function *function)
{
    if (!sanitize_flags_p(SANITIZE_THREAD, function->decl))
        return;
    basic_block block;
    FOR_EACH_BB_FN (block, function)
        for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at); gsi_next(&at)) {
            copy copy;
            tree size = copy_of(gsi_stmt(at), &copy) ? size_of(gsi_stmt(at), copy) : NULL_TREE;
            if (!size)
                continue;
            check_before(&at, copy.from, size, false);
            check_before(&at, copy.also_from, size, false);
            check_before(&at, copy.to, size, true);
        }
}
