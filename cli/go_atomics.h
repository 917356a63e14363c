/* Atomic operations as Go's file of hooks does them without a call into C, most often: see cli/go_fast.c. go/atomics.h and go/objects.h do
 * the same, and the rest.
 *
 * 1. At the beginning of a function of sync/atomic (SP) is the return address, and the arguments are behind it; results come after
 *    them.
 * 2. Until the operation itself is done nothing is changed but the object's lock: from each step before it there is a way to rf_unlock,
 *    or rf_slow, and so to C, which does all of it again.
 * 3. AX is the address, DI the goroutine, BX its epoch, R8 the site, R9 the granule, R12 the object.
 */
#ifndef RF_CLI_GO_ATOMICS_H
#define RF_CLI_GO_ATOMICS_H

#include "cli/go_text.h"
#include "go/layout.h"

/* clang-format off */

/* prefetchw, which the assembler of Go has no name for: (AX), (R10). */
#define PREFETCH_VARIABLE "\tBYTE\t$0x0f; BYTE\t$0x0d; BYTE\t$0x08\n"
#define PREFETCH_R10 "\tBYTE\t$0x41; BYTE\t$0x0f; BYTE\t$0x0d; BYTE\t$0x0a\n"

/* A function of its own: SI is 0 if the goroutine DI knows the epoch in DX. R10 and R11 change. */
#define KNOWN                                         \
    "TEXT\trf_known<>(SB), NOSPLIT, $0-0\n"           \
    "\tMOVQ\tDX, SI\n"                                \
    "\tSHRQ\t$" TEXT(GO_TIME_BITS) ", SI\n"           \
    "\tMOVQ\t" TEXT(GO_KNOWN) "(DI), R10\n"           \
    "\tTESTQ\tR10, R10\n"                             \
    "\tJEQ\trf_extra\n"                               \
    "\tCMPL\tSI, " TEXT(GO_TIMES_LEN) "(R10)\n"       \
    "\tJCC\trf_extra\n"                               \
    "\tMOVL\tDX, R11\n"                               \
    "\tANDL\t$((1<<" TEXT(GO_TIME_BITS) ")-1), R11\n" \
    "\tCMPL\tR11, " TEXT(GO_TIMES) "(R10)(SI*4)\n"    \
    "\tJLS\trf_yes\n"                                 \
    "rf_extra:\n"                                     \
    "\tMOVQ\t" TEXT(GO_EXTRA) "(DI), R10\n"           \
    "\tMOVQ\tR10, SI\n"                               \
    "\tXORQ\tDX, SI\n"                                \
    "\tSHRQ\t$" TEXT(GO_TIME_BITS) ", SI\n"           \
    "\tJNE\trf_no\n"                                  \
    "\tCMPQ\tDX, R10\n"                               \
    "\tJLS\trf_yes\n"                                 \
    "rf_no:\n"                                        \
    "\tTESTQ\tDX, DX\n"                               \
    "\tJEQ\trf_yes\n"                                 \
    "\tMOVL\t$1, SI\n"                                \
    "\tRET\n"                                         \
    "rf_yes:\n"                                       \
    "\tXORL\tSI, SI\n"                                \
    "\tRET\n"

/* BX is its own epoch. If DX is not known the object is unlocked, and all is left to C. */
#define IF_KNOWN(label)                     \
    "\tMOVQ\tDX, SI\n"                      \
    "\tXORQ\tBX, SI\n"                      \
    "\tSHRQ\t$" TEXT(GO_TIME_BITS) ", SI\n" \
    "\tJEQ\t" label "\n"                    \
    "\tCALL\trf_known<>(SB)\n"              \
    "\tTESTL\tSI, SI\n"                     \
    "\tJNE\trf_unlock\n"                    \
    label ":\n"

/* site_here() in go/atomics.h. AX: the address of the operation, R9: its granule, R8: the site, R12: the object there, or another one, if
 * there is any; BX: the present epoch. `caller` is where the wrapper of the function keeps its return address. */
#define ATOMIC_SITE(caller)                                               \
    "\tMOVQ\tg_racectx(R14), DI\n"                                        \
    "\tMOVQ\t8(SP), AX\n"                                                 \
    "\tTESTQ\tDI, DI\n"                                                   \
    "\tJEQ\trf_slow\n"                                                    \
    IF_TRACKED                                                            \
    "\tMOVQ\t$" TEXT(GO_ADDRESS_MASK) ", R9\n"                            \
    "\tANDQ\tAX, R9\n"                                                    \
    "\tMOVQ\t$" TEXT(GO_EXTRAS_AT) ", R10\n"                              \
    "\tMOVQ\t(R10)(R9*1), R12\n"                                          \
    "\tTESTQ\tR12, R12\n"                                                 \
    "\tJEQ\trf_slow\n"                                                    \
    "\tCMPL\t" TEXT(GO_IGNORE) "(DI), $0\n"                               \
    "\tJNE\trf_slow\n"                                                    \
    "\tMOVQ\t" TEXT(GO_TOP) "(DI), SI\n"                                  \
    "\tCMPQ\tSI, " TEXT(GO_FRAMES) "(DI)\n"                               \
    "\tJLS\trf_slow\n"                                                    \
    "\tXORL\tDX, DX\n"                                                    \
    "\tMOVQ\t" caller "(SP), R11\n"                                       \
    "\tMOVL\t(" TEXT(GO_FRAME_NOTE) "-" TEXT(GO_FRAME_SIZE) ")(SI), CX\n" \
    "\tTESTL\tCX, CX\n"                                                   \
    "\tJNE\trf_site\n"                                                    \
    "\tSUBQ\t$" TEXT(GO_FRAME_SIZE) ", SI\n"                              \
    "\tCMPQ\tSI, " TEXT(GO_FRAMES) "(DI)\n"                               \
    "\tJLS\trf_slow\n"                                                    \
    "\tMOVQ\t(SI), DX\n"                                                  \
    "\tMOVL\t(" TEXT(GO_FRAME_NOTE) "-" TEXT(GO_FRAME_SIZE) ")(SI), CX\n" \
    "\tTESTL\tCX, CX\n"                                                   \
    "\tJEQ\trf_slow\n"                                                    \
    "rf_site:\n"                                                          \
    "\tMOVQ\tR11, R8\n"                                                   \
    "\tXORQ\tDX, R8\n"                                                    \
    "\tMOVQ\tR8, R10\n"                                                   \
    "\tSHRQ\t$4, R10\n"                                                   \
    "\tXORQ\tR10, R8\n"                                                   \
    "\tANDL\t$(" TEXT(GO_SITES_COUNT) "-1), R8\n"                         \
    "\tSHLL\t$" TEXT(GO_SITE_SHIFT) ", R8\n"                              \
    "\tLEAQ\t" TEXT(GO_SITES) "(DI)(R8*1), R8\n"                          \
    "\tCMPQ\tR11, " TEXT(GO_SITE_CALLER) "(R8)\n"                         \
    "\tJNE\trf_slow\n"                                                    \
    "\tMOVQ\t(SP), R10\n"                                                 \
    "\tCMPQ\tR10, " TEXT(GO_SITE_CALL) "(R8)\n"                           \
    "\tJNE\trf_slow\n"                                                    \
    "\tCMPQ\tDX, " TEXT(GO_SITE_FRAME) "(R8)\n"                           \
    "\tJNE\trf_slow\n"                                                    \
    "\tCMPL\tCX, " TEXT(GO_SITE_BELOW) "(R8)\n"                           \
    "\tJNE\trf_slow\n"                                                    \
    "\tMOVQ\t" TEXT(GO_NOW) "(DI), BX\n"

/* The object is locked, if nobody has it: it is the right one, what it has of stamps is two at most, and the last one of a read is known;
 * so is the plain history of the granule. */
#define ATOMIC_LOCK(size)                                \
    "\tMOVL\t$1, CX\n"                                   \
    "\tXCHGL\tCX, (R12)\n"                               \
    "\tTESTL\tCX, CX\n"                                  \
    "\tJNE\trf_slow\n"                                   \
    "\tCMPQ\tAX, " TEXT(GO_OBJECT_ADDR) "(R12)\n"        \
    "\tJNE\trf_unlock\n"                                 \
    "\tCMPL\t" TEXT(GO_OBJECT_SIZE) "(R12), $" size "\n" \
    "\tJNE\trf_unlock\n"                                 \
    "\tMOVQ\t$" TEXT(GO_CELLS_AT) ", R10\n"              \
    "\tMOVQ\t(R10)(R9*2), DX\n"                          \
    "\tMOVQ\t8(R10)(R9*2), CX\n"                         \
    "\tBTQ\t$" TEXT(GO_SPLIT_BIT) ", DX\n"               \
    "\tJCS\trf_unlock\n"                                 \
    "\tSHLQ\t$" TEXT(GO_FLAG_BITS) ", DX\n"              \
    "\tSHRQ\t$" TEXT(GO_FLAG_BITS) ", DX\n"              \
    IF_KNOWN("rf_written")                               \
    "\tTESTQ\tCX, CX\n"                                  \
    "\tJLT\trf_unlock\n"                                 \
    "\tMOVQ\tCX, DX\n"                                   \
    IF_KNOWN("rf_read")                                  \
    "\tMOVQ\t" TEXT(GO_OBJECT_READ) "(R12), DX\n"        \
    IF_KNOWN("rf_stamp")

/* There is nothing to learn. */
#define ATOMIC_ACQUIRE                           \
    "\tMOVQ\t" TEXT(GO_OBJECT_OWN) "(R12), DX\n" \
    "\tTESTQ\tDX, DX\n"                          \
    "\tJEQ\trf_unlock\n"                         \
    IF_KNOWN("rf_learned")

/* What the goroutine knows can be handed on: R13 is 0, if only its own epoch is new to the object, or the array that will be a copy of the
 * goroutine's. */
#define ATOMIC_RELEASE                                                 \
    "\tMOVQ\t" TEXT(GO_OBJECT_WROTE) "(R12), DX\n"                     \
    IF_KNOWN("rf_wrote")                                               \
    "\tCMPQ\tBX, " TEXT(GO_LIMIT) "(DI)\n"                             \
    "\tJCC\trf_unlock\n"                                               \
    "\tXORL\tR13, R13\n"                                               \
    "\tMOVQ\t" TEXT(GO_CHANGED) "(DI), CX\n"                           \
    "\tMOVQ\t" TEXT(GO_OBJECT_OWN) "(R12), DX\n"                       \
    "\tMOVQ\tBX, SI\n"                                                 \
    "\tSUBQ\tCX, DX\n"                                                 \
    "\tSUBQ\tCX, SI\n"                                                 \
    "\tCMPQ\tDX, SI\n"                                                 \
    "\tJLS\trf_ready\n"                                                \
    "\tMOVQ\t" TEXT(GO_KNOWN) "(DI), R10\n"                            \
    "\tMOVQ\t" TEXT(GO_OBJECT_KNOWN) "(R12), R13\n"                    \
    "\tTESTQ\tR10, R10\n"                                              \
    "\tJEQ\trf_unlock\n"                                               \
    "\tTESTQ\tR13, R13\n"                                              \
    "\tJEQ\trf_unlock\n"                                               \
    "\tCMPL\t" TEXT(GO_TIMES_LEN) "(R10), $" TEXT(GO_TIMES_FIRST) "\n" \
    "\tJHI\trf_unlock\n"                                               \
    "\tCMPL\t" TEXT(GO_TIMES_LEN) "(R13), $" TEXT(GO_TIMES_FIRST) "\n" \
    "\tJHI\trf_unlock\n"                                               \
    "\tCMPL\t(R13), $1\n"                                              \
    "\tJNE\trf_unlock\n"                                               \
    "rf_ready:\n"

/* The operation was done. object_stamp(), object_release() and epoch_next(). R13 below 0: nothing is handed on. */
#define ATOMIC_WROTE                                    \
    "\tMOVB\t$1, " TEXT(GO_USED) "(DI)\n"               \
    "\tMOVL\t" TEXT(GO_SITE_NOTE) "(R8), CX\n"          \
    "\tMOVQ\tBX, " TEXT(GO_OBJECT_WROTE) "(R12)\n"      \
    "\tMOVQ\t$0, " TEXT(GO_OBJECT_READ) "(R12)\n"       \
    "\tMOVL\tCX, " TEXT(GO_OBJECT_WROTE_NOTE) "(R12)\n" \
    "\tTESTQ\tR13, R13\n"                               \
    "\tJEQ\trf_own\n"                                   \
    "\tJLT\trf_done\n"                                  \
    "\tMOVQ\t" TEXT(GO_KNOWN) "(DI), R10\n"             \
    "\tMOVL\t" TEXT(GO_TIMES_LEN) "(R10), CX\n"         \
    "\tMOVOU\t(" TEXT(GO_TIMES) "+0)(R10), X0\n"        \
    "\tMOVOU\t(" TEXT(GO_TIMES) "+16)(R10), X1\n"       \
    "\tMOVOU\t(" TEXT(GO_TIMES) "+32)(R10), X2\n"       \
    "\tMOVQ\t" TEXT(GO_EXTRA) "(DI), DX\n"              \
    "\tMOVL\tCX, " TEXT(GO_TIMES_LEN) "(R13)\n"         \
    "\tMOVOU\tX0, (" TEXT(GO_TIMES) "+0)(R13)\n"        \
    "\tMOVOU\tX1, (" TEXT(GO_TIMES) "+16)(R13)\n"       \
    "\tMOVOU\tX2, (" TEXT(GO_TIMES) "+32)(R13)\n"       \
    "\tMOVQ\tDX, " TEXT(GO_OBJECT_EXTRA) "(R12)\n"      \
    "rf_own:\n"                                         \
    "\tMOVQ\tBX, " TEXT(GO_OBJECT_OWN) "(R12)\n"        \
    "\tINCQ\tBX\n"                                      \
    "\tMOVQ\tBX, " TEXT(GO_OWN) "(DI)\n"                \
    "\tMOVB\t$0, " TEXT(GO_USED) "(DI)\n"               \
    "\tMOVQ\tBX, " TEXT(GO_NOW) "(DI)\n"                \
    "rf_done:\n"                                        \
    "\tMOVL\t$0, (R12)\n"                               \
    "\tRET\n"

/* It only read. */
#define ATOMIC_READ                                    \
    "\tCMPQ\tBX, " TEXT(GO_OBJECT_WROTE) "(R12)\n"     \
    "\tJEQ\trf_seen\n"                                 \
    "\tMOVB\t$1, " TEXT(GO_USED) "(DI)\n"              \
    "\tMOVL\t" TEXT(GO_SITE_NOTE) "(R8), CX\n"         \
    "\tMOVQ\tBX, " TEXT(GO_OBJECT_READ) "(R12)\n"      \
    "\tMOVL\tCX, " TEXT(GO_OBJECT_READ_NOTE) "(R12)\n" \
    "rf_seen:\n"                                       \
    "\tMOVL\t$0, (R12)\n"                              \
    "\tRET\n"

#define ATOMIC_END        \
    "rf_unlock:\n"        \
    "\tMOVL\t$0, (R12)\n" \
    "rf_slow:\n"

#define LOAD32             \
    ATOMIC_SITE("32")      \
    ATOMIC_LOCK("4")       \
    ATOMIC_ACQUIRE         \
    "\tMOVL\t(AX), CX\n"   \
    "\tMOVL\tCX, 16(SP)\n" \
    ATOMIC_READ            \
    ATOMIC_END

#define LOAD64             \
    ATOMIC_SITE("32")      \
    ATOMIC_LOCK("8")       \
    ATOMIC_ACQUIRE         \
    "\tMOVQ\t(AX), CX\n"   \
    "\tMOVQ\tCX, 16(SP)\n" \
    ATOMIC_READ            \
    ATOMIC_END

#define STORE32            \
    ATOMIC_SITE("32")      \
    PREFETCH_VARIABLE      \
    ATOMIC_LOCK("4")       \
    ATOMIC_RELEASE         \
    "\tMOVL\t16(SP), CX\n" \
    "\tXCHGL\tCX, (AX)\n"  \
    ATOMIC_WROTE           \
    ATOMIC_END

#define STORE64            \
    ATOMIC_SITE("32")      \
    PREFETCH_VARIABLE      \
    ATOMIC_LOCK("8")       \
    ATOMIC_RELEASE         \
    "\tMOVQ\t16(SP), CX\n" \
    "\tXCHGQ\tCX, (AX)\n"  \
    ATOMIC_WROTE           \
    ATOMIC_END

#define SWAP32             \
    ATOMIC_SITE("40")      \
    PREFETCH_VARIABLE      \
    ATOMIC_LOCK("4")       \
    ATOMIC_ACQUIRE         \
    ATOMIC_RELEASE         \
    "\tMOVL\t16(SP), CX\n" \
    "\tXCHGL\tCX, (AX)\n"  \
    "\tMOVL\tCX, 24(SP)\n" \
    ATOMIC_WROTE           \
    ATOMIC_END

#define SWAP64             \
    ATOMIC_SITE("40")      \
    PREFETCH_VARIABLE      \
    ATOMIC_LOCK("8")       \
    ATOMIC_ACQUIRE         \
    ATOMIC_RELEASE         \
    "\tMOVQ\t16(SP), CX\n" \
    "\tXCHGQ\tCX, (AX)\n"  \
    "\tMOVQ\tCX, 24(SP)\n" \
    ATOMIC_WROTE           \
    ATOMIC_END

#define ADD32              \
    ATOMIC_SITE("40")      \
    PREFETCH_VARIABLE      \
    ATOMIC_LOCK("4")       \
    ATOMIC_ACQUIRE         \
    ATOMIC_RELEASE         \
    "\tMOVL\t16(SP), CX\n" \
    "\tMOVL\tCX, DX\n"     \
    "\tLOCK\n"             \
    "\tXADDL\tCX, (AX)\n"  \
    "\tADDL\tDX, CX\n"     \
    "\tMOVL\tCX, 24(SP)\n" \
    ATOMIC_WROTE           \
    ATOMIC_END

#define ADD64              \
    ATOMIC_SITE("40")      \
    PREFETCH_VARIABLE      \
    ATOMIC_LOCK("8")       \
    ATOMIC_ACQUIRE         \
    ATOMIC_RELEASE         \
    "\tMOVQ\t16(SP), CX\n" \
    "\tMOVQ\tCX, DX\n"     \
    "\tLOCK\n"             \
    "\tXADDQ\tCX, (AX)\n"  \
    "\tADDQ\tDX, CX\n"     \
    "\tMOVQ\tCX, 24(SP)\n" \
    ATOMIC_WROTE           \
    ATOMIC_END

/* If it takes a mutex nothing is handed on. What is needed to hand it on when it is given back is asked for, and the history of what lies
 * behind the mutex. */
#define SWAP_IF32                                   \
    ATOMIC_SITE("40")                               \
    PREFETCH_VARIABLE                               \
    ATOMIC_LOCK("4")                                \
    ATOMIC_ACQUIRE                                  \
    "\tCMPL\t" TEXT(GO_SITE_LOCKS) "(R8), $0\n"     \
    "\tJEQ\trf_hands_on\n"                          \
    "\tMOVQ\t" TEXT(GO_OBJECT_WROTE) "(R12), DX\n"  \
    IF_KNOWN("rf_taken")                            \
    "\tMOVQ\t$-1, R13\n"                            \
    "\tMOVQ\t" TEXT(GO_OBJECT_KNOWN) "(R12), R10\n" \
    PREFETCH_R10                                    \
    "\tMOVQ\t$" TEXT(GO_CELLS_AT) ", R10\n"         \
    "\tLEAQ\t16(R10)(R9*2), R10\n"                  \
    PREFETCH_R10                                    \
    "\tJMP\trf_operation\n"                         \
    "rf_hands_on:\n"                                \
    ATOMIC_RELEASE                                  \
    "rf_operation:\n"                               \
    "\tMOVQ\tAX, R11\n"                             \
    "\tMOVL\t16(SP), AX\n"                          \
    "\tMOVL\t20(SP), CX\n"                          \
    "\tLOCK\n"                                      \
    "\tCMPXCHGL\tCX, (R11)\n"                       \
    "\tSETEQ\t24(SP)\n"                             \
    "\tJNE\trf_failed\n"                            \
    ATOMIC_WROTE                                    \
    "rf_failed:\n"                                  \
    ATOMIC_READ                                     \
    ATOMIC_END

#define SWAP_IF64             \
    ATOMIC_SITE("48")         \
    PREFETCH_VARIABLE         \
    ATOMIC_LOCK("8")          \
    ATOMIC_ACQUIRE            \
    ATOMIC_RELEASE            \
    "\tMOVQ\tAX, R11\n"       \
    "\tMOVQ\t16(SP), AX\n"    \
    "\tMOVQ\t24(SP), CX\n"    \
    "\tLOCK\n"                \
    "\tCMPXCHGQ\tCX, (R11)\n" \
    "\tSETEQ\t32(SP)\n"       \
    "\tJNE\trf_failed\n"      \
    ATOMIC_WROTE              \
    "rf_failed:\n"            \
    ATOMIC_READ               \
    ATOMIC_END

/* clang-format on */

#endif
