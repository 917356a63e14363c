/* What the encoder and the decoder of .rft agree on.
 *
 * A tag below 0x80 is an access:  bit 0    write
 *                                 bits 1-2 log2 of the size
 *                                 bits 3-4 log2 of the bytes of its address delta; one and two bytes count in units of the size
 *                                 bits 5-6 bytes of its site delta: 0, 1, 2, 4
 * Any other is 0x80 | what:       an operation, with bit 5 "the site changed" and bit 6 "has a size", its fields as varints in
 *                                 the fourth column; or one of the controls below.
 * Deltas are zigzag coded, against the last address of the same kind, and the last site, of this thread in this chunk.
 */
#ifndef RF_TRACE_RFT_CODING_H
#define RF_TRACE_RFT_CODING_H

#include "core/event.h"

#define RFT_OTHER 0x80u
#define RFT_WHAT 0x1fu
#define RFT_SITE 0x20u
#define RFT_SIZE 0x40u

#define RFT_STEP 29u       /* varint: the next event's number is the last one plus this, not plus 1 */
#define RFT_NEW_THREAD 30u /* varint: from here on events are of this thread, which is new in this chunk */
#define RFT_THREAD 31u     /* varint: ... of the thread that was the n-th new one */

_Static_assert(RF_OP_COUNT <= RFT_STEP, "operations and controls share the tag");

#define RFT_COLUMNS 12u /* bytes before the columns: the sizes of the first three */

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
