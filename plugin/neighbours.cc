/* Checks of bytes that lie side by side become one, where the first of them was: colour[0], colour[1], colour[2] and colour[3].
 *
 * 1. They stand in one block with nothing between that may synchronise, so that all are made if one is, in one epoch (check.h, 2).
 * 2. Of a few lines, so that a report names the right one, or one beside it.
 */
#include <algorithm>

#include "plugin/check.h"
#include "plugin/rules.h"

struct member {
    rf_check check;
    gimple *statement;
    unsigned order;
    expanded_location line;
};

static bool alike(const member &one, const member &other)
{
    return one.check.write == other.check.write && one.check.terms == other.check.terms && one.line.file == other.line.file;
}

static bool before(const member &one, const member &other)
{
    if (one.check.write != other.check.write)
        return other.check.write;
    if (one.check.terms != other.check.terms)
        return one.check.terms < other.check.terms;
    if (one.check.offset != other.check.offset)
        return one.check.offset < other.check.offset;
    return one.order < other.order;
}

static bool pays(const std::vector<member> &members, size_t first, size_t end, HOST_WIDE_INT size)
{
    HOST_WIDE_INT align =
        std::max<HOST_WIDE_INT>(rf_check_alignment(&members[first].check),
                                get_pointer_alignment(gimple_call_arg(members[first].statement, 0)) / BITS_PER_UNIT);
    return rf_joining_pays(end - first, size, align);
}

/* members[first] .. members[end - 1] are the bytes from the offset of the first one on. */
static void join(const std::vector<member> &members, size_t first, size_t end, HOST_WIDE_INT size)
{
    /* A range of 2, 4 or 8 bytes, as gcc makes them of what may be unaligned, has a hook of its own, which is quicker. */
    bool has_name = end - first == 1 && pow2p_hwi(size) && size < 16 && gimple_call_num_args(members[first].statement) == 2;
    if (!has_name && !pays(members, first, end, size))
        return;
    const member *earliest = &members[first];
    for (size_t i = first; i < end; i++)
        if (members[i].order < earliest->order)
            earliest = &members[i];
    gimple_stmt_iterator at = gsi_for_stmt(earliest->statement);
    tree pointer = gimple_call_arg(earliest->statement, 0);
    HOST_WIDE_INT back = earliest->check.offset - members[first].check.offset;
    gimple_seq made = NULL;
    if (back)
        pointer = force_gimple_operand(fold_build_pointer_plus_hwi(pointer, -back), &made, true, NULL_TREE);
    gimple_seq_add_stmt(&made, rf_check_call(pointer, size_int(size), members[first].check.align, earliest->check.write,
                                             gimple_location(earliest->statement)));
    gsi_insert_seq_before(&at, made, GSI_SAME_STMT);
    for (size_t i = first; i < end; i++) {
        at = gsi_for_stmt(members[i].statement);
        rf_check_remove(&at);
    }
}

static void join_all(std::vector<member> &members)
{
    std::sort(members.begin(), members.end(), before);
    for (size_t first = 0, end; first < members.size(); first = end) {
        HOST_WIDE_INT from = members[first].check.offset, to = from + members[first].check.size;
        rf_lines lines(members[first].line.line);
        for (end = first + 1; end < members.size() && alike(members[first], members[end]) &&
                              members[end].check.offset <= to && lines.take(members[end].line.line);
             end++)
            to = std::max(to, members[end].check.offset + members[end].check.size);
        join(members, first, end, to - from);
    }
    members.clear();
}

void rf_join_neighbours(function *function)
{
    basic_block block;
    std::vector<member> members;
    FOR_EACH_BB_FN (block, function) {
        unsigned order = 0;
        for (gimple_stmt_iterator at = gsi_start_bb(block); !gsi_end_p(at); gsi_next(&at)) {
            member here;
            here.statement = gsi_stmt(at);
            here.order = order++;
            if (rf_check_of(here.statement, &here.check)) {
                here.line = expand_location(gimple_location(here.statement));
                members.push_back(here);
            } else if (rf_synchronises(here.statement)) {
                join_all(members); /* removes what lies before `at` */
            }
        }
        join_all(members);
    }
}
