#include "plugin/check.h"

#include <algorithm>
#include <set>

/* -- addresses ------------------------------------------------------------------------------------------------------------------ */

#define DEEP 16 /* definitions that are looked through */

enum kind { VALUE, NARROW, VARIABLE, KINDS };

static void add_term(rf_check *check, kind kind, unsigned number, HOST_WIDE_INT times)
{
    uint64_t value = (uint64_t)number * KINDS + kind;
    for (auto &term : check->terms)
        if (term.first == value) {
            term.second = (HOST_WIDE_INT)((unsigned HOST_WIDE_INT)term.second + times);
            return;
        }
    check->terms.push_back({ value, times });
}

static void add_constant(rf_check *check, unsigned HOST_WIDE_INT constant, HOST_WIDE_INT times)
{
    check->offset = (HOST_WIDE_INT)((unsigned HOST_WIDE_INT)check->offset + constant * (unsigned HOST_WIDE_INT)times);
}

static bool add_value(rf_check *check, tree value, HOST_WIDE_INT times, int depth);

static bool is_wide(const_tree value)
{
    const_tree type = TREE_TYPE(value);
    return (INTEGRAL_TYPE_P(type) || POINTER_TYPE_P(type)) && TYPE_PRECISION(type) == 64;
}

/* &reference */
static bool add_place(rf_check *check, tree reference, HOST_WIDE_INT times, int depth)
{
    poly_int64 bits, at;
    tree more;
    machine_mode mode;
    int is_unsigned, is_reversed, is_volatile;
    HOST_WIDE_INT bit, constant;
    tree base = get_inner_reference(reference, &bits, &at, &more, &mode, &is_unsigned, &is_reversed, &is_volatile);
    if (!at.is_constant(&bit) || bit % BITS_PER_UNIT || (more && !add_value(check, more, times, depth)))
        return false;
    add_constant(check, (unsigned HOST_WIDE_INT)(bit / BITS_PER_UNIT), times);
    if (TREE_CODE(base) == MEM_REF) {
        poly_int64 offset;
        if (!mem_ref_offset(base).to_shwi(&offset) || !offset.is_constant(&constant))
            return false;
        add_constant(check, (unsigned HOST_WIDE_INT)constant, times);
        return add_value(check, TREE_OPERAND(base, 0), times, depth);
    }
    if (!DECL_P(base))
        return false;
    add_term(check, VARIABLE, DECL_UID(base), times);
    return true;
}

/* A value of fewer bits, made wide: that it does not overflow may be a promise of the language. */
static bool add_widened(rf_check *check, tree narrow, HOST_WIDE_INT times, int depth)
{
    if (TREE_CODE(narrow) == INTEGER_CST)
        return add_value(check, narrow, times, depth);
    if (TREE_CODE(narrow) != SSA_NAME || !INTEGRAL_TYPE_P(TREE_TYPE(narrow)) || TYPE_PRECISION(TREE_TYPE(narrow)) > 64)
        return false;
    const gimple *made = SSA_NAME_DEF_STMT(narrow);
    if (depth < DEEP && TYPE_OVERFLOW_UNDEFINED(TREE_TYPE(narrow)) && is_gimple_assign(made) &&
        gimple_assign_rhs_code(made) == PLUS_EXPR && TREE_CODE(gimple_assign_rhs2(made)) == INTEGER_CST)
        return add_widened(check, gimple_assign_rhs1(made), times, depth + 1) &&
               add_value(check, gimple_assign_rhs2(made), times, depth);
    add_term(check, NARROW, SSA_NAME_VERSION(narrow), times);
    return true;
}

static bool add_converted(rf_check *check, tree from, HOST_WIDE_INT times, int depth)
{
    return is_wide(from) ? add_value(check, from, times, depth) : add_widened(check, from, times, depth);
}

/* One and two: operands of the code, of an expression or a definition. */
static bool add_sum(rf_check *check, tree_code code, tree one, tree two, HOST_WIDE_INT times, int depth)
{
    switch (code) {
    case PLUS_EXPR:
    case POINTER_PLUS_EXPR:
        return add_value(check, one, times, depth) && add_value(check, two, times, depth);
    case MINUS_EXPR:
        return add_value(check, one, times, depth) && add_value(check, two, -times, depth);
    case MULT_EXPR:
        return TREE_CODE(two) == INTEGER_CST &&
               add_value(check, one, (HOST_WIDE_INT)(times * wi::to_widest(two).ulow()), depth);
    case SSA_NAME:
        return add_value(check, one, times, depth);
    CASE_CONVERT:
        return add_converted(check, one, times, depth);
    default:
        return false;
    }
}

static bool add_value(rf_check *check, tree value, HOST_WIDE_INT times, int depth)
{
    if (TREE_CODE(value) == INTEGER_CST) {
        add_constant(check, wi::to_widest(value).ulow(), times);
        return true;
    }
    if (TREE_CODE(value) == ADDR_EXPR)
        return add_place(check, TREE_OPERAND(value, 0), times, depth);
    if (!is_wide(value))
        return false;
    if (TREE_CODE(value) != SSA_NAME)
        return (UNARY_CLASS_P(value) || BINARY_CLASS_P(value)) &&
               add_sum(check, TREE_CODE(value), TREE_OPERAND(value, 0),
                       BINARY_CLASS_P(value) ? TREE_OPERAND(value, 1) : NULL_TREE, times, depth);
    const gimple *made = SSA_NAME_DEF_STMT(value);
    if (depth < DEEP && is_gimple_assign(made) && !SSA_NAME_OCCURS_IN_ABNORMAL_PHI(value)) {
        rf_check before = *check;
        tree one = gimple_assign_rhs1(made);
        tree_code code = gimple_assign_rhs_code(made);
        if (code == ADDR_EXPR ? add_place(check, TREE_OPERAND(one, 0), times, depth + 1)
                              : add_sum(check, code, one, gimple_assign_rhs2(made), times, depth + 1))
            return true;
        *check = before;
    }
    add_term(check, VALUE, SSA_NAME_VERSION(value), times);
    return true;
}

/* -- checks --------------------------------------------------------------------------------------------------------------------- */

#define SIZES 5                                   /* 1, 2, 4, 8, 16 */
#define LARGEST ((unsigned HOST_WIDE_INT)1 << 40) /* nobody has as much: the loop is never run */
#define ALIGNED 8                                 /* is enough for 16 bytes, too */

static const built_in_function hooks[2][SIZES] = {
    { BUILT_IN_TSAN_READ1, BUILT_IN_TSAN_READ2, BUILT_IN_TSAN_READ4, BUILT_IN_TSAN_READ8, BUILT_IN_TSAN_READ16 },
    { BUILT_IN_TSAN_WRITE1, BUILT_IN_TSAN_WRITE2, BUILT_IN_TSAN_WRITE4, BUILT_IN_TSAN_WRITE8, BUILT_IN_TSAN_WRITE16 },
};
static const built_in_function ranges[2] = { BUILT_IN_TSAN_READ_RANGE, BUILT_IN_TSAN_WRITE_RANGE };

/* Of 2, 4 and 8 bytes at any address: the runtime has them, for clang. */
static GTY(()) tree unaligned[2][SIZES];

void rf_check_roots(const char *plugin)
{
    static const ggc_root_tab roots[] = { { &unaligned[0][0], 2 * SIZES, sizeof(tree), &gt_ggc_mx_tree_node, NULL },
                                          LAST_GGC_ROOT_TAB };
    register_callback(plugin, PLUGIN_REGISTER_GGC_ROOTS, NULL, const_cast<ggc_root_tab *>(roots));
}

static tree unaligned_hook(bool write, int index)
{
    tree &hook = unaligned[write][index];
    if (!hook) {
        char name[64];
        snprintf(name, sizeof name, "__tsan_unaligned_%s%d", write ? "write" : "read", 1 << index);
        hook = build_fn_decl(name, build_function_type_list(void_type_node, ptr_type_node, NULL_TREE));
        TREE_NOTHROW(hook) = 1;
    }
    return hook;
}

static bool is_hook(gimple *statement, rf_check *check, tree *pointer)
{
    if (!is_gimple_call(statement) || gimple_call_internal_p(statement))
        return false;
    tree function = gimple_call_fndecl(statement);
    if (!function)
        return false;
    for (int write = 0; write < 2; write++) {
        check->write = write;
        for (int i = 0; i < SIZES; i++)
            if (function == unaligned[write][i] || fndecl_built_in_p(function, hooks[write][i])) {
                check->size = 1 << i;
                check->align = function == unaligned[write][i] ? 1 : MIN(check->size, ALIGNED);
                *pointer = gimple_call_arg(statement, 0);
                return true;
            }
        if (fndecl_built_in_p(function, ranges[write]) && tree_fits_uhwi_p(gimple_call_arg(statement, 1)) &&
            tree_to_uhwi(gimple_call_arg(statement, 1)) <= LARGEST) {
            check->size = tree_to_shwi(gimple_call_arg(statement, 1));
            check->align = 1;
            *pointer = gimple_call_arg(statement, 0);
            return check->size > 0;
        }
    }
    return false;
}

bool rf_check_of(gimple *statement, rf_check *check)
{
    tree pointer;
    if (!is_hook(statement, check, &pointer))
        return false;
    check->terms.clear();
    check->offset = 0;
    if (!add_value(check, pointer, 1, 0))
        return false;
    auto gone = [](const std::pair<uint64_t, HOST_WIDE_INT> &term) { return !term.second; };
    check->terms.erase(std::remove_if(check->terms.begin(), check->terms.end(), gone), check->terms.end());
    std::sort(check->terms.begin(), check->terms.end());
    return true;
}

HOST_WIDE_INT rf_check_alignment(const rf_check *check)
{
    unsigned HOST_WIDE_INT bits = (unsigned HOST_WIDE_INT)check->offset | 16;
    for (const auto &term : check->terms) {
        tree value = term.first % KINDS == VALUE ? ssa_name(term.first / KINDS) : NULL_TREE;
        bits |= term.second == 1 && value && POINTER_TYPE_P(TREE_TYPE(value)) && COMPLETE_TYPE_P(TREE_TYPE(TREE_TYPE(value)))
                    ? TYPE_ALIGN_UNIT(TREE_TYPE(TREE_TYPE(value)))
                : term.first % KINDS == VARIABLE ? 16
                                                 : (unsigned HOST_WIDE_INT)term.second;
    }
    return (HOST_WIDE_INT)(bits & -bits);
}

gimple *rf_check_call(tree pointer, tree size, HOST_WIDE_INT align, bool write, location_t place)
{
    int index = tree_fits_uhwi_p(size) && pow2p_hwi(tree_to_uhwi(size)) ? exact_log2(tree_to_uhwi(size)) : SIZES;
    gimple *call;
    if (index < SIZES && MAX(align, get_pointer_alignment(pointer) / BITS_PER_UNIT) >= MIN(1 << index, ALIGNED))
        call = gimple_build_call(builtin_decl_implicit(hooks[write][index]), 1, pointer);
    else if (index < SIZES - 1)
        call = gimple_build_call(unaligned_hook(write, index), 1, pointer);
    else
        call = gimple_build_call(builtin_decl_implicit(ranges[write]), 2, pointer, size);
    gimple_set_location(call, place);
    return call;
}

void rf_check_remove(gimple_stmt_iterator *at)
{
    gimple *statement = gsi_stmt(*at);
    unlink_stmt_vdef(statement);
    gsi_remove(at, true);
    release_defs(statement);
}

/* -- who synchronises ----------------------------------------------------------------------------------------------------------- */

static std::set<unsigned> quiet; /* by DECL_UID */

void rf_function_is_quiet(tree function)
{
    if (decl_binds_to_current_def_p(function)) /* else another one of the name may be called */
        quiet.insert(DECL_UID(function));
}

/* Hooks that only tell of accesses and of functions. */
static bool only_tells(tree function)
{
    const char *name = IDENTIFIER_POINTER(DECL_ASSEMBLER_NAME(function));
    static const char *const beginnings[] = { "__tsan_read", "__tsan_write", "__tsan_unaligned_", "__tsan_func_",
                                              "__tsan_vptr_" };
    for (const char *beginning : beginnings)
        if (!strncmp(name, beginning, strlen(beginning)))
            return true;
    return false;
}

/* Functions of the language that neither synchronise nor call what might. */
static bool is_harmless(const_tree function)
{
    switch (DECL_FUNCTION_CODE(function)) {
    case BUILT_IN_MEMCPY:
    case BUILT_IN_MEMMOVE:
    case BUILT_IN_MEMSET:
    case BUILT_IN_PREFETCH:
    case BUILT_IN_RETURN_ADDRESS: /* for __tsan_func_entry() */
    case BUILT_IN_UNREACHABLE:
        return true;
    default:
        return flags_from_decl_or_type(function) & (ECF_CONST | ECF_PURE);
    }
}

bool rf_synchronises(gimple *statement)
{
    if (gimple_code(statement) == GIMPLE_ASM)
        return gimple_asm_volatile_p(as_a<gasm *>(statement)) || gimple_vdef(statement);
    if (gimple_has_volatile_ops(statement))
        return true;
    if (!is_gimple_call(statement))
        return false;
    if (gimple_call_internal_p(statement))
        return !gimple_call_internal_p(statement, IFN_TSAN_FUNC_EXIT) && gimple_vdef(statement);
    tree function = gimple_call_fndecl(statement);
    if (!function)
        return true;
    if (fndecl_built_in_p(function, BUILT_IN_NORMAL) && is_harmless(function))
        return false;
    return !only_tells(function) && !quiet.count(DECL_UID(function));
}
