/* What the encoder and the decoder of .rft agree on.
 *
 * A tag below RFT_OTHER is an access, ((site * 6 + addr) * 4 + log2 of the size) * 2 + write, where addr 0 the last address
 * 1 the one behind it: plus the size 2, 3 delta of 1, 2 bytes, in units of the size 4, 5 delta of 4, 8 bytes site 0 the last
 * site 1 plus one 2, 3 delta of 1, 4 bytes Any other is RFT_OTHER + an operation, with its fields as varints in the fourth
 * column: address, site, and size if it has one; or RFT_OTHER + one of the controls below. RFT_OTHER + RFT_SYSTEM + an operation is
 * the same with the mark of the runtime system; an access that has it is never written in the short way. Deltas are zigzag coded, against
 * the last address of the same kind, and the last site, of this thread in this chunk.
 */
#ifndef RF_TRACE_RFT_CODING_H
#define RF_TRACE_RFT_CODING_H

#include "core/event.h"

#define RFT_OTHER 192u
#define RFT_SYSTEM 32u
#define RFT_STEP 61u       /* varint: the next event's number is the last one plus this, not plus 1 */
#define RFT_NEW_THREAD 62u /* varint: from here on events are of this thread, which is new in this chunk */
#define RFT_THREAD 63u     /* varint: ... of the thread that was the n-th new one */

_Static_assert(RF_OP_COUNT <= RFT_SYSTEM && RFT_SYSTEM + RF_OP_COUNT <= RFT_STEP, "operations and controls share the tag");

#define RFT_COLUMNS 12u /* bytes before the columns: the sizes of the first three */

enum { RFT_SAME, RFT_NEXT, RFT_ADDR1, RFT_ADDR2, RFT_ADDR4, RFT_ADDR8 };
enum { RFT_SITE_SAME, RFT_SITE_NEXT, RFT_SITE1, RFT_SITE4 };

static inline unsigned rft_tag(unsigned site, unsigned addr, unsigned log, unsigned write)
{
    return ((site * 6 + addr) * 4 + log) * 2 + write;
}

static inline bool rft_has_size(enum rf_op op)
{
    return rf_op_kind(op) == RF_ACCESS || rf_op_kind(op) == RF_MEMORY || rf_op_kind(op) == RF_PART || op == RF_COMMIT;
}

/* What an operation's addr is relative to. */
enum rft_base { RFT_VARIABLE, RFT_OBJECT, RFT_ABSOLUTE };

static inline enum rft_base rft_base(enum rf_op op)
{
    switch (op) {
    case RF_FORK:
    case RF_JOIN:
    case RF_IDENTITY:
    case RF_COMMIT:
    case RF_SAMPLE_BEGIN:
    case RF_SAMPLE_END:
        return RFT_ABSOLUTE;
    default:
        return rf_op_kind(op) == RF_SYNC || rf_op_kind(op) == RF_RAW ? RFT_OBJECT : RFT_VARIABLE;
    }
}

static inline uint64_t rft_zigzag(uint64_t delta)
{
    return (delta << 1) ^ (0 - (delta >> 63));
}

static inline uint64_t rft_unzigzag(uint64_t coded)
{
    return (coded >> 1) ^ (0 - (coded & 1));
}

static inline uint32_t rft_zigzag32(uint32_t delta)
{
    return (delta << 1) ^ (0 - (delta >> 31));
}

static inline uint32_t rft_unzigzag32(uint32_t coded)
{
    return (coded >> 1) ^ (0 - (coded & 1));
}

#endif
