/* Checks leave loops that cannot synchronise: those of neighbouring bytes, one after the other, as that of all of them, before the loop; those of
 * the same bytes, as one.
 *
 * 1. The loop has one way out, and how often it is gone round is known when it begins. A check leaves if it is made every time.
 * 2. What the loop is about to access is looked at before: nothing in it synchronises, so all of it is of one epoch (check.h, 2).
 * 3. What comes after these passes then knows the loop again as one that it can make vectors of.
 */
#include "plugin/check.h"

/* What is known of a loop. */
struct around {
    class loop *loop;
    edge out;
    tree rounds; /* how often its end leads to its beginning, of sizetype */
};

static bool is_whole(basic_block block)
{
    edge one;
    edge_iterator i;
    FOR_EACH_EDGE (one, i, block->succs)
        if (one->flags & (EDGE_ABNORMAL | EDGE_EH))
            return false;
    return true;
}

static bool may_synchronise(class loop *loop)
{
    basic_block *blocks = get_loop_body(loop);
    bool may = false;
    for (unsigned i = 0; !may && i < loop->num_nodes; i++) {
        may = !is_whole(blocks[i]);
        for (gimple_stmt_iterator at = gsi_start_bb(blocks[i]); !may && !gsi_end_p(at); gsi_next(&at))
            may = rf_synchronises(gsi_stmt(at));
    }
    free(blocks);
    return may;
}

static bool look_around(struct around *around)
{
    class tree_niter_desc times;
    around->out = single_exit(around->loop);
    if (!around->out || may_synchronise(around->loop) ||
        !number_of_iterations_exit(around->loop, around->out, &times, false) || TREE_CODE(times.niter) == SCEV_NOT_KNOWN)
        return false;
    around->rounds = fold_convert(sizetype, unshare_expr(times.niter));
    if (!integer_zerop(times.may_be_zero)) /* if that holds the loop is left at once */
        around->rounds = fold_build3(COND_EXPR, sizetype, unshare_expr(times.may_be_zero), size_zero_node, around->rounds);
    return true;
}

/* The check of what `at` checks in all rounds; NULL: it stays. What is computed for it is added to `made`. */
static gimple *check_of_all(const struct around *around, gimple *statement, const rf_check *check, gimple_seq *made)
{
    affine_iv moves;
    tree pointer = gimple_call_arg(statement, 0);
    basic_block block = gimple_bb(statement);
    /* Made once more than the loop's end leads back, or as often: in the latter case perhaps never. */
    bool once_more = dominated_by_p(CDI_DOMINATORS, around->out->src, block);
    if (!dominated_by_p(CDI_DOMINATORS, around->loop->latch, block) ||
        !simple_iv(around->loop, loop_containing_stmt(statement), pointer, &moves, false) ||
        !cst_and_fits_in_hwi(moves.step) || !expr_invariant_in_loop_p(around->loop, moves.base))
        return NULL;
    HOST_WIDE_INT step = int_cst_value(moves.step);
    if (step > check->size || step < -check->size || (!once_more && absu_hwi(step) != (unsigned HOST_WIDE_INT)check->size))
        return NULL;
    tree base = fold_convert(ptr_type_node, unshare_expr(moves.base)), size = size_int(check->size);
    if (step) {
        tree steps = once_more ? around->rounds : fold_build2(MINUS_EXPR, sizetype, around->rounds, size_one_node);
        tree way = fold_build2(MULT_EXPR, sizetype, unshare_expr(steps), size_int(absu_hwi(step)));
        if (step < 0)
            base = fold_build_pointer_plus(base, fold_build1(NEGATE_EXPR, sizetype, way));
        size = fold_build2(PLUS_EXPR, sizetype, unshare_expr(way), size);
    }
    base = force_gimple_operand(base, made, true, NULL_TREE);
    gimple_seq more = NULL;
    size = force_gimple_operand(size, &more, true, NULL_TREE);
    gimple_seq_add_seq(made, more);
    return rf_check_call(base, size, step ? 1 : check->align, check->write, gimple_location(statement));
}

static void leave(class loop *loop)
{
    struct around around = { loop, NULL, NULL_TREE };
    if (!look_around(&around))
        return;
    basic_block *blocks = get_loop_body_in_dom_order(loop);
    for (unsigned i = 0; i < loop->num_nodes; i++) {
        for (gimple_stmt_iterator at = gsi_start_bb(blocks[i]); !gsi_end_p(at);) {
            rf_check check;
            gimple_seq made = NULL;
            gimple *all = rf_check_of(gsi_stmt(at), &check) ? check_of_all(&around, gsi_stmt(at), &check, &made) : NULL;
            if (!all) {
                gsi_next(&at);
                continue;
            }
            gimple_seq_add_stmt(&made, all);
            gsi_insert_seq_on_edge_immediate(loop_preheader_edge(loop), made);
            rf_check_remove(&at);
        }
    }
    free(blocks);
}

bool rf_leave_loops(void)
{
    bool end = true;
    loop_optimizer_init(LOOPS_NORMAL | LOOPS_HAVE_RECORDED_EXITS);
    if (number_of_loops(cfun) > 1) {
        calculate_dominance_info(CDI_DOMINATORS);
        scev_initialize();
        for (auto loop : loops_list(cfun, LI_FROM_INNERMOST)) {
            end &= finite_loop_p(loop);
            leave(loop);
        }
        scev_finalize();
    }
    loop_optimizer_finalize();
    return end;
}
