/* The memory that a recorded program and the recorder share: guest/record.c writes it, cli/record.c reads it.
 *
 * 1. It is a struct rf_recording, the text of the program's maps, two rings of RF_REC_RING entries, and blocks. A thread of the program
 *    takes a block, writes entries into it from the first to the last, and takes the next. Only the thread writes entries; only the
 *    recorder clears a block and gives it back.
 * 2. An entry is two words, and its first is written last (x86 keeps stores in order): a first word of 0 is one that is not there
 *    yet. So what a program that was killed had written is there, whole, and can be read. An event of two entries has its second one
 *    written before its first.
 *        an access        op + 1 << 48 | addr | size << 56, pc; size 0: RF_REC_MORE | size, 0 follows
 *        anything else    op + 1 << 48 | size, ticket | who << 60; RF_REC_MORE | key or address, pc follows
 *        a copy           the same with the source's address; RF_REC_MORE | the target's, 0 follows
 *        a commit         as anything else; its parts are accesses of their own kinds, and come before it
 *    RF_REC_SYSTEM is added for what the runtime system under the program does. An IDENTITY in a thread's entries has as its key the
 *    number of the kernel thread that performs it from there on, the thread's own number: none but itself.
 *    The text of the maps has lines of its own for places that are in no module: FROM-TO ---p 0 00:00 0 =FILE:LINE FUNCTION
 * 3. `log` tells the recorder which blocks were taken, in order; `free` is the way back. No more blocks than a ring has entries.
 * 4. A thread takes a ticket only when it has room for the event: a ticket that was taken is soon written, whoever waits for a block.
 *    So the recorder, which goes by tickets, never waits for a thread that waits for the recorder.
 */
#ifndef RF_CORE_RECORDING_H
#define RF_CORE_RECORDING_H

#include <stdint.h>

#define RF_REC_MAGIC UINT64_C(0x3163657264657266)
#define RF_REC_VARIABLE "REDFLAG_RECORDING" /* in the environment: the number of the descriptor */
#define RF_REC_ENTRIES 1024u                /* of a block; the first is its head */
#define RF_REC_MAPS (1u << 20)
#define RF_REC_MORE (UINT64_C(1) << 63)
#define RF_REC_SYSTEM (UINT64_C(1) << 55)
#define RF_REC_TICKETS (UINT64_C(1) << 60)
#define RF_REC_ADDRESS ((UINT64_C(1) << 48) - 1)

/* Beyond those of core/ops.def. */
enum { RF_REC_BEGIN = 64, RF_REC_END };

struct rf_rec_entry {
    uint64_t what, more;
};

struct rf_rec_block {
    uint32_t thread; /* whose: its number */
    uint32_t zero;
    uint64_t unused;
    struct rf_rec_entry entries[RF_REC_ENTRIES - 1];
};

struct rf_recording {
    /* Set by the recorder before the program starts. */
    uint64_t magic, bytes;
    uint32_t blocks; /* that there are */
    uint32_t plenty; /* so many may be in use before who has one already must wait for the recorder */
    int32_t recorder;
    /* By the program: who is recorded. The first that comes. */
    int32_t program;
    uint32_t maps_size; /* bytes of text, written before this is */
    uint32_t stopped;   /* by the recorder: nothing more is wanted */
    uint64_t tickets __attribute__((aligned(64)));
    uint64_t fresh __attribute__((aligned(64))); /* blocks that were used at all: the first so many */
    uint64_t logged;                             /* entries of the ring `log` that were begun */
    uint64_t taken;                              /* entries of the ring `free` that were used */
    uint64_t freed __attribute__((aligned(64))); /* entries of the ring `free` that were filled, by the recorder */
    uint32_t turn;                               /* changes when blocks were freed: for futex */
    uint32_t waiting;                            /* somebody waits for it */
};

static inline char *rf_rec_maps(struct rf_recording *recording)
{
    return (char *)recording + 4096;
}

static inline uint32_t *rf_rec_log(struct rf_recording *recording)
{
    return (uint32_t *)(void *)((char *)recording + 4096 + RF_REC_MAPS);
}

static inline uint32_t *rf_rec_free(struct rf_recording *recording)
{
    return rf_rec_log(recording) + recording->blocks;
}

static inline uint64_t rf_rec_before_blocks(uint32_t blocks)
{
    return (4096 + RF_REC_MAPS + (uint64_t)blocks * 8 + 4095) & ~UINT64_C(4095);
}

static inline struct rf_rec_block *rf_rec_block(struct rf_recording *recording, uint32_t block)
{
    return (struct rf_rec_block *)(void *)((char *)recording + rf_rec_before_blocks(recording->blocks)) + block;
}

#endif
