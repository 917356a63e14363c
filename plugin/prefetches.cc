/* What the program fetches ahead, its history is fetched with: else the check of the access waits for memory that the access does not wait for.
 *
 * 1. Where the history lies is known when the program is compiled (guest/hot.h, 1). Should it run on another runtime, or before the guest has
 *    started, a line is asked for that nobody needs, or that is not there: that does no harm.
 */
#include "plugin/check.h"

#define __ASSEMBLER__ /* the numbers alone */
#include "guest/hot.h"
#undef __ASSEMBLER__

static tree combined(tree_code code, tree value, unsigned HOST_WIDE_INT constant, gimple_seq *made)
{
    tree result = make_ssa_name(size_type_node);
    gimple_seq_add_stmt(made, gimple_build_assign(result, code, value, build_int_cst(size_type_node, constant)));
    return result;
}

/* The same prefetch, of the word of the address. */
static gimple_seq of_history(gimple *prefetch)
{
    gimple_seq made = NULL;
    tree address = make_ssa_name(size_type_node), word = make_ssa_name(ptr_type_node);
    gimple_seq_add_stmt(&made, gimple_build_assign(address, NOP_EXPR, gimple_call_arg(prefetch, 0)));
    address = combined(BIT_AND_EXPR, address, RF_ADDRESS_MASK, &made);
    address = combined(PLUS_EXPR, address, RF_WORDS, &made);
    gimple_seq_add_stmt(&made, gimple_build_assign(word, NOP_EXPR, address));
    gimple *call = gimple_copy(prefetch);
    gimple_call_set_arg(as_a<gcall *>(call), 0, word);
    gimple_set_vdef(call, NULL_TREE);
    gimple_set_vuse(call, NULL_TREE);
    gimple_set_modified(call, true);
    /* Which gcc does not know of the first one: among exceptions that is the end of its block. */
    gimple_call_set_nothrow(as_a<gcall *>(call), true);
    gimple_seq_add_stmt(&made, call);
    return made;
}

void rf_prefetch_histories(function *function)
{
    basic_block block;
    FOR_EACH_BB_FN (block, function)
        for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at); gsi_next(&at))
            if (gimple_call_builtin_p(gsi_stmt(at), BUILT_IN_PREFETCH))
                gsi_insert_seq_before(&at, of_history(gsi_stmt(at)), GSI_SAME_STMT);
}
