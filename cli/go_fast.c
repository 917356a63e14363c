/* Two files of Go, taken as they are on the user's machine and changed a little. A file of a form that is not known here stays as it is,
 * and the program is only slower.
 *
 * 1. src/runtime/race_amd64.s: what a hook does most often is done where Go's compiler calls it, without a change of the stack, without
 *    a call into C. After the first line of some functions a few instructions are inserted that either finish and return or fall
 *    through to what was there, with nothing changed that it uses. go/race.c does the same in C.
 * 2. src/sync/mutex.go: Lock and Unlock tell the detector twice that they order goroutines, by an atomic operation on the mutex and by
 *    race.Acquire, or race.Release, of the same address. To FastTrack the operation alone says it all: one that succeeds acquires and
 *    releases. Others know locks by what is left out here. Lines keep their numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/go_fast.h"
#include "go/layout.h"
#include "trace/grow.h"

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* AX: the address. R10: where cells are, R9: the granule without what tells heaps from data, BX: the present epoch, CX: the bit of W that
 * stands for the byte. */
#define FIND_CELL                                       \
    "\tMOVQ\tg_racectx(R14), DI\n"                      \
    "\tCMPQ\tAX, runtime·racearenastart(SB)\n"          \
    "\tJCS\trf_data\n"                                  \
    "\tCMPQ\tAX, runtime·racearenaend(SB)\n"            \
    "\tJCS\trf_cell\n"                                  \
    "rf_data:\n"                                        \
    "\tCMPQ\tAX, runtime·racedatastart(SB)\n"           \
    "\tJCS\trf_slow\n"                                  \
    "\tCMPQ\tAX, runtime·racedataend(SB)\n"             \
    "\tJCC\trf_slow\n"                                  \
    "rf_cell:\n"                                        \
    "\tMOVQ\t$" TEXT(GO_ADDRESS_MASK) ", R9\n"          \
    "\tMOVQ\tAX, CX\n"                                  \
    "\tANDQ\tAX, R9\n"                                  \
    "\tANDL\t$7, CX\n"                                  \
    "\tMOVQ\t$" TEXT(GO_CELLS_AT) ", R10\n"             \
    "\tADDL\t$" TEXT(GO_MASK_SHIFT) ", CX\n"            \
    "\tMOVQ\t" TEXT(GO_NOW) "(DI), BX\n"                \
    "\tMOVQ\t(R10)(R9*2), R8\n"                         \
    "\tBTQ\tCX, R8\n"                                   \
    "\tJCC\trf_slow\n"

/* R is of the present epoch, or a set of readers with it in it; the set counts only if R still names it (go/readers.h). */
#define READ                                            \
    FIND_CELL                                           \
    "\tMOVQ\t8(R10)(R9*2), DX\n"                        \
    "\tCMPQ\tDX, BX\n"                                  \
    "\tJNE\trf_set\n"                                   \
    "\tRET\n"                                           \
    "rf_set:\n"                                         \
    "\tTESTQ\tDX, DX\n"                                 \
    "\tJGE\trf_slow\n"                                  \
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
    "rf_slow:\n"

/* W is, flags apart. */
#define WRITE                                           \
    FIND_CELL                                           \
    "\tXORQ\tBX, R8\n"                                  \
    "\tSHLQ\t$" TEXT(GO_FLAG_BITS) ", R8\n"             \
    "\tJNE\trf_slow\n"                                  \
    "\tRET\n"                                           \
    "rf_slow:\n"

/* R11: where the caller goes on. DX, a closure's context, must stay. */
#define ENTER                                           \
    "\tMOVQ\tg_racectx(R14), DI\n"                      \
    "\tMOVQ\t" TEXT(GO_TOP) "(DI), AX\n"                \
    "\tCMPQ\tAX, " TEXT(GO_END) "(DI)\n"                \
    "\tJEQ\trf_slow\n"                                  \
    "\tMOVQ\tR11, (AX)\n"                               \
    "\tMOVL\t$0, " TEXT(GO_FRAME_NOTE) "(AX)\n"         \
    "\tADDQ\t$" TEXT(GO_FRAME_SIZE) ", AX\n"            \
    "\tMOVQ\tAX, " TEXT(GO_TOP) "(DI)\n"                \
    "\tRET\n"                                           \
    "rf_slow:\n"

#define LEAVE                                           \
    "\tMOVQ\tg_racectx(R14), DI\n"                      \
    "\tMOVQ\t" TEXT(GO_TOP) "(DI), AX\n"                \
    "\tCMPQ\tAX, " TEXT(GO_FRAMES) "(DI)\n"             \
    "\tJLS\trf_slow\n"                                  \
    "\tSUBQ\t$" TEXT(GO_FRAME_SIZE) ", AX\n"            \
    "\tMOVQ\tAX, " TEXT(GO_TOP) "(DI)\n"                \
    "\tRET\n"                                           \
    "rf_slow:\n"

static const struct insertion {
    const char *line, *text;
} insertions[] = {
    { "TEXT\truntime·raceread<ABIInternal>(SB), NOSPLIT, $0-8\n", READ },
    { "TEXT\truntime·racewrite<ABIInternal>(SB), NOSPLIT, $0-8\n", WRITE },
    { "TEXT\tracefuncenter<>(SB), NOSPLIT, $0-0\n", ENTER },
    { "TEXT\truntime·racefuncexit(SB), NOSPLIT, $0-0\n", LEAVE },
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
