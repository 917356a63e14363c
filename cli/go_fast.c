/* Two files of Go, taken as they are on the user's machine and changed a little. A file of a form that is not known here stays as it is,
 * and the program is only slower.
 *
 * 1. src/runtime/race_amd64.s: what a hook does most often is done where Go's compiler calls it, without a change of the stack, without
 *    a call into C. After the first line of some functions a few instructions are inserted that either finish and return or fall
 *    through to what was there, with nothing changed that it uses. go/accesses.h does the same in C. Go preempts no assembly: a cell
 *    that is locked there is unlocked soon. Atomic operations: cli/go_atomics.h.
 * 2. src/sync/mutex.go: Lock and Unlock tell the detector twice that they order goroutines, by an atomic operation on the mutex and by
 *    race.Acquire, or race.Release, of the same address. To FastTrack the operation alone says it all: one that succeeds acquires and
 *    releases. Others know locks by what is left out here. Lines keep their numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/go_atomics.h"
#include "cli/go_fast.h"
#include "cli/go_text.h"
#include "go/layout.h"
#include "trace/grow.h"

/* clang-format off */

/* AX: the address. R10: where cells are, R9: the granule without what tells heaps from data, BX: the present epoch, CX: the bit of W that
 * stands for the byte; R8: W. */
#define FIND_CELL                              \
    "\tMOVQ\tg_racectx(R14), DI\n"             \
    IF_TRACKED                                 \
    "\tMOVQ\t$" TEXT(GO_ADDRESS_MASK) ", R9\n" \
    "\tMOVQ\tAX, CX\n"                         \
    "\tANDQ\tAX, R9\n"                         \
    "\tANDL\t$7, CX\n"                         \
    "\tMOVQ\t$" TEXT(GO_CELLS_AT) ", R10\n"    \
    "\tADDL\t$" TEXT(GO_MASK_SHIFT) ", CX\n"   \
    "\tMOVQ\t" TEXT(GO_NOW) "(DI), BX\n"       \
    "\tMOVQ\t(R10)(R9*2), R8\n"                \
    "\tBTQ\tCX, R8\n"                          \
    "\tJCC\trf_other\n"

/* Where an access is: R13, from the return address; or from two, for those that tell of a call, with the last answers about stacks. The
 * stack has a note, and no other detector is at work (GO_CODE). SI and R11 change. */
#define STACK_NOTE                                                        \
    "\tMOVQ\t" TEXT(GO_TOP) "(DI), SI\n"                                  \
    "\tCMPQ\tSI, " TEXT(GO_FRAMES) "(DI)\n"                               \
    "\tJLS\trf_slow\n"                                                    \
    "\tMOVL\t(" TEXT(GO_FRAME_NOTE) "-" TEXT(GO_FRAME_SIZE) ")(SI), SI\n" \
    "\tTESTL\tSI, SI\n"                                                   \
    "\tJEQ\trf_slow\n"

#define PLACE  \
    STACK_NOTE \
    "\tMOVQ\t(SP), R13\n"

#define PLACE_UNDER_CALL                           \
    STACK_NOTE                                     \
    "\tMOVQ\tcallpc+8(FP), R13\n"                  \
    "\tMOVQ\tR13, R11\n"                           \
    "\tSHRQ\t$4, R11\n"                            \
    "\tXORQ\tR13, R11\n"                           \
    "\tXORQ\tSI, R11\n"                            \
    "\tANDL\t$(" TEXT(GO_ASKED_COUNT) "-1), R11\n" \
    "\tSHLL\t$4, R11\n"                            \
    "\tADDQ\tDI, R11\n"                            \
    "\tCMPQ\tR13, (" TEXT(GO_ASKED) "+0)(R11)\n"   \
    "\tJNE\trf_slow\n"                             \
    "\tCMPL\tSI, (" TEXT(GO_ASKED) "+8)(R11)\n"    \
    "\tJNE\trf_slow\n"                             \
    "\tMOVL\t(" TEXT(GO_ASKED) "+12)(R11), SI\n"   \
    "\tMOVQ\tpc+16(FP), R13\n"                     \
    "\tINCQ\tR13\n"

/* The next simple case, step_shortly() in go/cells.h: the cell is the history of this byte alone, or rf_flags finds that it tells enough;
 * DX, its R, is an epoch that happens before now. Behind it the cell is locked; R13 is where the access is, R12 where notes are. The
 * variable and the notes are asked for first, as no load passes the lock. */
#define SHORT_STEP(prefetch_variable, place)         \
    prefetch_variable                                \
    "\tMOVQ\t$" TEXT(GO_NOTES_AT) ", R12\n"          \
    "\tPREFETCHT0\t(R12)(R9*2)\n"                    \
    "\tMOVQ\tR8, SI\n"                               \
    "\tBTRQ\tCX, SI\n"                               \
    "\tSHRQ\t$" TEXT(GO_MASK_SHIFT) ", SI\n"         \
    "\tJNE\trf_flags\n"                              \
    "rf_enough:\n"                                   \
    "\tTESTQ\tDX, DX\n"                              \
    "\tJEQ\trf_known\n"                              \
    "\tJLT\trf_slow\n"                               \
    "\tMOVQ\tDX, R11\n"                              \
    "\tXORQ\tBX, R11\n"                              \
    "\tSHRQ\t$" TEXT(GO_TIME_BITS) ", R11\n"         \
    "\tJEQ\trf_known\n"                              \
    "\tMOVQ\tDX, R11\n"                              \
    "\tSHRQ\t$" TEXT(GO_TIME_BITS) ", R11\n"         \
    "\tMOVQ\t" TEXT(GO_KNOWN) "(DI), R13\n"          \
    "\tTESTQ\tR13, R13\n"                            \
    "\tJEQ\trf_extra\n"                              \
    "\tCMPL\tR11, " TEXT(GO_TIMES_LEN) "(R13)\n"     \
    "\tJCC\trf_extra\n"                              \
    "\tMOVL\tDX, SI\n"                               \
    "\tANDL\t$((1<<" TEXT(GO_TIME_BITS) ")-1), SI\n" \
    "\tCMPL\tSI, " TEXT(GO_TIMES) "(R13)(R11*4)\n"   \
    "\tJLS\trf_known\n"                              \
    "rf_extra:\n"                                    \
    "\tMOVQ\t" TEXT(GO_EXTRA) "(DI), R13\n"          \
    "\tMOVQ\tR13, SI\n"                              \
    "\tXORQ\tDX, SI\n"                               \
    "\tSHRQ\t$" TEXT(GO_TIME_BITS) ", SI\n"          \
    "\tJNE\trf_slow\n"                               \
    "\tCMPQ\tDX, R13\n"                              \
    "\tJHI\trf_slow\n"                               \
    "rf_known:\n"                                    \
    place                                            \
    "\tSUBQ\t" TEXT(GO_CODE) "(DI), R13\n"           \
    "\tMOVQ\tR13, R11\n"                             \
    "\tSHRQ\t$31, R11\n"                             \
    "\tJNE\trf_slow\n"                               \
    "\tSHLQ\t$32, R13\n"                             \
    "\tORQ\tSI, R13\n"                               \
    "\tMOVQ\tAX, R11\n"                              \
    "\tMOVQ\tR8, AX\n"                               \
    "\tMOVQ\tR8, SI\n"                               \
    "\tBTSQ\t$63, SI\n"                              \
    "\tLOCK\n"                                       \
    "\tCMPXCHGQ\tSI, (R10)(R9*2)\n"                  \
    "\tMOVQ\tR11, AX\n"                              \
    "\tJNE\trf_slow\n"                               \
    "\tCMPQ\tDX, 8(R10)(R9*2)\n"                     \
    "\tJNE\trf_unlock\n"                             \
    "\tMOVQ\t$" TEXT(GO_TOUCHED_AT) ", R11\n"        \
    "\tMOVQ\tR9, SI\n"                               \
    "\tSHRQ\t$" TEXT(GO_TOUCHED_SHIFT) ", SI\n"      \
    "\tCMPB\t(R11)(SI*1), $0\n"                      \
    "\tJNE\trf_touched\n"                            \
    "\tMOVB\t$1, (R11)(SI*1)\n"                      \
    "rf_touched:\n"                                  \
    "\tMOVB\t$1, " TEXT(GO_USED) "(DI)\n"

/* R8: what W will be. */
#define SHORT_END                \
    "\tMOVQ\tBX, 8(R10)(R9*2)\n" \
    "\tBTSQ\tCX, R8\n"           \
    "\tMOVQ\tR8, (R10)(R9*2)\n"  \
    "\tRET\n"                    \
    "rf_unlock:\n"               \
    "\tMOVQ\tR8, (R10)(R9*2)\n"  \
    "\tJMP\trf_slow\n"

/* SI: the flags but for the byte's own, of which there are some. See flags_for_short() in go/cells.h. */
#define FIRST_OF_SPLIT                       \
    "\tCMPL\tSI, $" TEXT(GO_FLAG_SPLIT) "\n" \
    "\tJNE\trf_more\n"                       \
    "\tCMPL\tCX, $" TEXT(GO_MASK_SHIFT) "\n" \
    "\tJEQ\trf_enough\n"

#define WRITTEN_WITH_OTHERS                   \
    "\tCMPL\tSI, $" TEXT(GO_FLAG_OTHERS) "\n" \
    "\tJNE\trf_whole\n"                       \
    "\tBTQ\tCX, R8\n"                         \
    "\tJCS\trf_enough\n"                      \
    "\tJMP\trf_slow\n"                        \
    "rf_whole:\n"                             \
    "\tMOVQ\tR8, SI\n"                        \
    "\tSHRQ\t$" TEXT(GO_MASK_SHIFT) ", SI\n"  \
    "\tCMPL\tSI, $0xff\n"                     \
    "\tJNE\trf_slow\n"                        \
    "\tMOVQ\tR8, SI\n"                        \
    "\tXORQ\tDX, SI\n"                        \
    "\tSHLQ\t$" TEXT(GO_FLAG_BITS) ", SI\n"   \
    "\tJEQ\trf_enough\n"

/* R is of the present epoch, or a set of readers with it in it; the set counts only if R still names it (go/readers.h). Who is the first
 * to read a byte that was written with all others of its granule leaves them as they were. */
#define READ(place)                                     \
    FIND_CELL                                           \
    "\tMOVQ\t8(R10)(R9*2), DX\n"                        \
    "\tCMPQ\tDX, BX\n"                                  \
    "\tJNE\trf_set\n"                                   \
    "\tRET\n"                                           \
    "rf_set:\n"                                         \
    "\tTESTQ\tDX, DX\n"                                 \
    "\tJGE\trf_short\n"                                 \
    "\tMOVL\tDX, SI\n"                                  \
    "\tSHLQ\t$" TEXT(GO_READER_SHIFT) ", SI\n"          \
    "\tMOVQ\t$" TEXT(GO_READERS_AT) ", R8\n"            \
    "\tADDQ\tR8, SI\n"                                  \
    "\tCMPQ\tBX, (" TEXT(GO_READER_EPOCHS) "+0)(SI)\n"  \
    "\tJEQ\trf_again\n"                                 \
    "\tCMPQ\tBX, (" TEXT(GO_READER_EPOCHS) "+8)(SI)\n"  \
    "\tJEQ\trf_again\n"                                 \
    "\tCMPQ\tBX, (" TEXT(GO_READER_EPOCHS) "+16)(SI)\n" \
    "\tJEQ\trf_again\n"                                 \
    "\tCMPQ\tBX, (" TEXT(GO_READER_EPOCHS) "+24)(SI)\n" \
    "\tJNE\trf_slow\n"                                  \
    "rf_again:\n"                                       \
    "\tCMPQ\tDX, 8(R10)(R9*2)\n"                        \
    "\tJNE\trf_slow\n"                                  \
    "\tRET\n"                                           \
    "rf_other:\n"                                       \
    "\tMOVQ\t8(R10)(R9*2), DX\n"                        \
    "rf_short:\n"                                       \
    SHORT_STEP("\tPREFETCHT0\t(AX)\n", place)           \
    "\tCMPQ\tR13, 8(R12)(R9*2)\n"                       \
    "\tJEQ\trf_noted\n"                                 \
    "\tMOVQ\tR13, 8(R12)(R9*2)\n"                       \
    "rf_noted:\n"                                       \
    "\tMOVQ\tR8, SI\n"                                  \
    "\tSHRQ\t$" TEXT(GO_MASK_SHIFT) ", SI\n"            \
    "\tCMPL\tSI, $0xff\n"                               \
    "\tJNE\trf_alone\n"                                 \
    "\tSHLQ\t$" TEXT(GO_FLAG_BITS) ", R8\n"             \
    "\tSHRQ\t$" TEXT(GO_FLAG_BITS) ", R8\n"             \
    "\tBTSQ\t$" TEXT(GO_OTHERS_BIT) ", R8\n"            \
    "rf_alone:\n"                                       \
    SHORT_END                                           \
    "rf_flags:\n"                                       \
    FIRST_OF_SPLIT                                      \
    "rf_more:\n"                                        \
    WRITTEN_WITH_OTHERS                                 \
    "rf_slow:\n"

/* W is, flags apart. */
#define WRITE(place)                        \
    FIND_CELL                               \
    "\tMOVQ\tR8, DX\n"                      \
    "\tXORQ\tBX, DX\n"                      \
    "\tSHLQ\t$" TEXT(GO_FLAG_BITS) ", DX\n" \
    "\tJNE\trf_other\n"                     \
    "\tRET\n"                               \
    "rf_other:\n"                           \
    "\tMOVQ\t8(R10)(R9*2), DX\n"            \
    SHORT_STEP(PREFETCH_VARIABLE, place)    \
    "\tCMPQ\tR13, (R12)(R9*2)\n"            \
    "\tJEQ\trf_noted\n"                     \
    "\tMOVQ\tR13, (R12)(R9*2)\n"            \
    "rf_noted:\n"                           \
    "\tBTQ\t$" TEXT(GO_SPLIT_BIT) ", R8\n"  \
    "\tMOVQ\tBX, R8\n"                      \
    "\tJCC\trf_alone\n"                     \
    "\tBTSQ\t$" TEXT(GO_SPLIT_BIT) ", R8\n" \
    "rf_alone:\n"                           \
    SHORT_END                               \
    "rf_flags:\n"                           \
    FIRST_OF_SPLIT                          \
    "rf_more:\n"                            \
    "rf_slow:\n"

/* R11: where the caller goes on. DX, a closure's context, must stay. */
#define ENTER                                   \
    "\tMOVQ\tg_racectx(R14), DI\n"              \
    "\tMOVQ\t" TEXT(GO_TOP) "(DI), AX\n"        \
    "\tCMPQ\tAX, " TEXT(GO_END) "(DI)\n"        \
    "\tJEQ\trf_slow\n"                          \
    "\tMOVQ\tR11, (AX)\n"                       \
    "\tMOVL\t$0, " TEXT(GO_FRAME_NOTE) "(AX)\n" \
    "\tADDQ\t$" TEXT(GO_FRAME_SIZE) ", AX\n"    \
    "\tMOVQ\tAX, " TEXT(GO_TOP) "(DI)\n"        \
    "\tRET\n"                                   \
    "rf_slow:\n"

#define LEAVE                                \
    "\tMOVQ\tg_racectx(R14), DI\n"           \
    "\tMOVQ\t" TEXT(GO_TOP) "(DI), AX\n"     \
    "\tCMPQ\tAX, " TEXT(GO_FRAMES) "(DI)\n"  \
    "\tJLS\trf_slow\n"                       \
    "\tSUBQ\t$" TEXT(GO_FRAME_SIZE) ", AX\n" \
    "\tMOVQ\tAX, " TEXT(GO_TOP) "(DI)\n"     \
    "\tRET\n"                                \
    "rf_slow:\n"

/* clang-format on */

#define ADDRESS "\tMOVQ\taddr+0(FP), AX\n"

static const struct insertion {
    const char *line, *text;
} insertions[] = {
    { "TEXT\truntime·raceread<ABIInternal>(SB), NOSPLIT, $0-8\n", READ(PLACE) },
    { "TEXT\truntime·racereadpc(SB), NOSPLIT, $0-24\n", ADDRESS READ(PLACE_UNDER_CALL) },
    { "TEXT\truntime·racewrite<ABIInternal>(SB), NOSPLIT, $0-8\n", WRITE(PLACE) },
    { "TEXT\truntime·racewritepc(SB), NOSPLIT, $0-24\n", ADDRESS WRITE(PLACE_UNDER_CALL) },
    { "TEXT\tracefuncenter<>(SB), NOSPLIT, $0-0\n", ENTER },
    { "TEXT\truntime·racefuncexit(SB), NOSPLIT, $0-0\n", LEAVE },
    { "// Atomic operations for sync/atomic package.\n\n", KNOWN },
    { "TEXT\tsync∕atomic·LoadInt32(SB), NOSPLIT, $0-12\n\tGO_ARGS\n", LOAD32 },
    { "TEXT\tsync∕atomic·LoadInt64(SB), NOSPLIT, $0-16\n\tGO_ARGS\n", LOAD64 },
    { "TEXT\tsync∕atomic·StoreInt32(SB), NOSPLIT, $0-12\n\tGO_ARGS\n", STORE32 },
    { "TEXT\tsync∕atomic·StoreInt64(SB), NOSPLIT, $0-16\n\tGO_ARGS\n", STORE64 },
    { "TEXT\tsync∕atomic·SwapInt32(SB), NOSPLIT, $0-20\n\tGO_ARGS\n", SWAP32 },
    { "TEXT\tsync∕atomic·SwapInt64(SB), NOSPLIT, $0-24\n\tGO_ARGS\n", SWAP64 },
    { "TEXT\tsync∕atomic·AddInt32(SB), NOSPLIT, $0-20\n\tGO_ARGS\n", ADD32 },
    { "TEXT\tsync∕atomic·AddInt64(SB), NOSPLIT, $0-24\n\tGO_ARGS\n", ADD64 },
    { "TEXT\tsync∕atomic·CompareAndSwapInt32(SB), NOSPLIT, $0-17\n\tGO_ARGS\n", SWAP_IF32 },
    { "TEXT\tsync∕atomic·CompareAndSwapInt64(SB), NOSPLIT, $0-25\n\tGO_ARGS\n", SWAP_IF64 },
};

#define INSERTIONS (sizeof insertions / sizeof *insertions)

bool rf_go_fast_hooks(const char *source, FILE *out)
{
    const char *at[INSERTIONS];
    for (size_t i = 0; i < INSERTIONS; i++) {
        at[i] = strstr(source, insertions[i].line);
        if (!at[i] || (i && at[i] < at[i - 1]) || strstr(at[i] + 1, insertions[i].line))
            return false;
    }
    for (size_t i = 0; i < INSERTIONS; i++) {
        const char *end = at[i] + strlen(insertions[i].line);
        fwrite(source, 1, (size_t)(end - source), out);
        fputs(insertions[i].text, out);
        source = end;
    }
    fputs(source, out);
    return true;
}

static const struct replacement {
    const char *old, *new;
} replacements[] = {
    { "\tif atomic.CompareAndSwapInt32(&m.state, 0, mutexLocked) {\n\t\tif race.Enabled {\n\t\t\trace.Acquire(unsafe.Pointer(m))\n\t\t}\n"
      "\t\treturn\n",
      "\tif atomic.CompareAndSwapInt32(&m.state, 0, mutexLocked) {\n\n\n\n\t\treturn\n" },
    { "\tif race.Enabled {\n\t\t_ = m.state\n\t\trace.Release(unsafe.Pointer(m))\n\t}\n\n\t// Fast path: drop lock bit.\n"
      "\tnew := atomic.AddInt32(&m.state, -mutexLocked)\n",
      "\n\n\n\n\n\n\tnew := atomic.AddInt32(&m.state, -mutexLocked)\n" },
};

#define REPLACEMENTS (sizeof replacements / sizeof *replacements)

bool rf_go_fast_mutex(const char *source, FILE *out)
{
    const char *at[REPLACEMENTS];
    for (size_t i = 0; i < REPLACEMENTS; i++) {
        at[i] = strstr(source, replacements[i].old);
        if (!at[i] || (i && at[i] < at[i - 1]) || strstr(at[i] + 1, replacements[i].old))
            return false;
    }
    for (size_t i = 0; i < REPLACEMENTS; i++) {
        fwrite(source, 1, (size_t)(at[i] - source), out);
        fputs(replacements[i].new, out);
        source = at[i] + strlen(replacements[i].old);
    }
    fputs(source, out);
    return true;
}
