/* What the hot hooks touch of a thread, and where they find the history of an address. guest/hooks.S knows these offsets.
 *
 * 1. A granule of RF_GRANULE bytes has one word at  (addr & RF_ADDRESS_MASK) + RF_WORDS.  User addresses of 47 bits lie in three
 *    stretches (low, around 0x55..., up to 0x7ff...) that the mask keeps apart, whatever the kernel's randomisation.
 *    An address and its word differ in their low bits, since the two are always loaded together. Some processors find a line of the first
 *    cache by a hash of bits 12 to 27: of two lines with equal ones in a set there is only one at a time, and each load of one is a miss
 *    for the other. And a load waits for an earlier store to an address that is equal in bits 0 to 11.
 * 2. A word is, from the top:  M 8 | odd 1 | Y 27 | writes 1 | X 27.  X and Y are moments (guest/moments.h), 0 is "never".
 *      odd 0, writes 1: the bytes in M were last written in Y; the others in X. Last reads are the same.
 *      odd 0, writes 0: all bytes were last written in X; those in M were last read in Y, the others in X.
 *        In these two, and in the mixed form, X may be a pair (guest/cells.h): then what was last written in X was last written in
 *        the pair's write, and last read in its read unless Y says otherwise. With writes 0 and all bytes in M: they were read both
 *        in Y and in the pair's read, by two threads, as most of what is shared by threads is.
 *      odd 1, writes 0: as above, but Y is the number of a read map.
 *      odd 1, writes 1, Y not 0: mixed. M is four digits of base three, the lowest for the first two bytes: 0: last written in X;
 *        1: the same, and last read in Y; 2: last written in Y. From RF_LOOSE_FIRST on: all bytes were last read in Y, but for some
 *        that were last written in Y, as the list of RF_LOOSE_MASKS has them: up to three (a separator in a text was overwritten), or any
 *        number that lie side by side, the last byte beside the first (a ring that is read as a whole).
 *        From RF_ATOMIC_TWO on: the bytes that M names were accessed atomically in X and in Y, and nothing else is known of any. From
 *        RF_ATOMIC_ONE on: in Y; all bytes were last written in X. Last reads are the same (guest/granule.h, 4).
 *        X may also be lanes (guest/lanes.h), from RF_LANES_FIRST on: then each byte has a cell of its own there, which counts where Y does
 *        not say something later of it. Y may be 0, and M, too. That goes for these three forms only, but no other has such an X.
 *      odd 1, writes 1, Y 0: the granule is in slices: X is the number of its record, M how many there are.
 * 3. The moments of a thread's present epoch are base .. base + span - 1, so an access to all of a granule repeats an earlier one of
 *    this epoch if  M = 0xff, odd = 0 and Y - base < span  (and, for a write, writes = 1).
 * 4. What the thread has accessed in its epoch of granules that are in slices, mixed or read by several is in a table of RF_SEEN pairs
 *    of words, for reads and for writes, found by the granule's number:  number 44 | stamp 12 | bytes 8.  The stamp is that of the
 *    epoch (guest/seen.h).
 * 5. All of it belongs to the thread; no other thread reads or writes it.
 */
#ifndef RF_GUEST_HOT_H
#define RF_GUEST_HOT_H

#ifndef RF_WORDS /* tests have a small plane elsewhere */
#define RF_ADDRESS_MASK 0x3ffffffffff8
#define RF_PATCHES 0x100000000000 /* where the room for words begins, */
#define RF_WORDS (RF_PATCHES + 0xf7c0) /* ... and where that of the first address is */
#define RF_WORDS_SIZE 0x400000040000 /* the planes end with a page */
#endif

#define RF_LINES 0x508000000000 /* a byte for each line of memory: pacer's, guest/pacer.h */
#define RF_LINE_BITS 6
#define RF_ADDRESS_BITS 46 /* of RF_ADDRESS_MASK */
#define RF_GATE_ROOM_BITS 7 /* of the code that pacer puts before a hook */

#ifndef RF_MOMENT_BITS
#define RF_MOMENT_BITS 27 /* fewer for tests: moments are used up, and swept, all the time */
#endif
#define RF_PAIRS_FIRST (7 << (RF_MOMENT_BITS - 3)) /* names from here on are those of pairs; guest/cells.h */
#define RF_LANES_FIRST 0x7800000                   /* ... and from here on, up to 27 bits, those of lanes; guest/lanes.h */
#if RF_MOMENT_BITS < 27
#define RF_PAIRS_END (1 << RF_MOMENT_BITS)
#else
#define RF_PAIRS_END RF_LANES_FIRST
#endif

#define RF_NOTES 0x503000000000 /* moment -> note, locks held; pair -> write, read */
#define RF_READERS 0x505000000000 /* read maps, 32 bytes each, with their moments from RF_READERS_FEW on; guest/units.h */
#define RF_READERS_FEW 8
#define RF_LANES 0x506800000000 /* lanes, 64 bytes each; guest/lanes.h */
#define RF_LANES_BITS 6

#define RF_LOOSE_FIRST 81
#define RF_LOOSE_MASKS(X) \
    X(0x01) X(0x02) X(0x04) X(0x05) X(0x06) X(0x07) X(0x08) X(0x09) X(0x0a) X(0x0b) X(0x0d) X(0x0e) X(0x10) X(0x11) X(0x12) X(0x13) \
    X(0x14) X(0x15) X(0x16) X(0x18) X(0x19) X(0x1a) X(0x1c) X(0x20) X(0x21) X(0x22) X(0x23) X(0x24) X(0x25) X(0x26) X(0x28) X(0x29) \
    X(0x2a) X(0x2c) X(0x31) X(0x32) X(0x34) X(0x38) X(0x40) X(0x41) X(0x42) X(0x43) X(0x44) X(0x45) X(0x46) X(0x48) X(0x49) X(0x4a) \
    X(0x4c) X(0x50) X(0x51) X(0x52) X(0x54) X(0x58) X(0x60) X(0x61) X(0x62) X(0x64) X(0x68) X(0x70) X(0x80) X(0x81) X(0x82) X(0x83) \
    X(0x84) X(0x85) X(0x86) X(0x88) X(0x89) X(0x8a) X(0x8c) X(0x90) X(0x91) X(0x92) X(0x94) X(0x98) X(0xa0) X(0xa1) X(0xa2) X(0xa4) \
    X(0xa8) X(0xb0) X(0xc1) X(0xc2) X(0xc4) X(0xc8) X(0xd0) X(0xe0) X(0x1e) X(0x78) X(0xe1) X(0x87) X(0x1f) X(0x3e) X(0x7c) X(0xf8) \
    X(0xf1) X(0xe3) X(0xc7) X(0x8f) X(0x7e) X(0xf9) X(0xe7) X(0x9f) X(0x7f) X(0xfe) X(0xfd) X(0xfb) X(0xf7) X(0xef) X(0xdf) X(0xbf)

#define RF_HOT_BASE 0   /* 0xff << 28 | the first moment of the epoch */
#define RF_HOT_SPAN 8   /* how many it has so far; 0: every access goes the long way */
#define RF_HOT_BASE2 16 /* base << 1 | 1, for writes */
#define RF_HOT_TOP 24   /* where the next frame is pushed */
#define RF_HOT_SELF 32
#define RF_HOT_FIRST 40 /* the first moment of the epoch, alone */
#define RF_HOT_STAMP 48 /* the epoch's stamp, shifted by 8 */
#define RF_HOT_SEEN 56  /* the table; never NULL */

#define RF_SEEN 512 /* pairs of the table */

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

/* Of a variable that only this library has: it is found without a look into the table of others' addresses. */
#define RF_OURS __attribute__((visibility("hidden")))

/* Of a variable that says what kind of run this is. Nearly every access that does not repeat another asks for most of them: they lie side by side,
 * so that they take a line of the cache, or two, and one page. */
#define RF_MODE __attribute__((section("rf_modes")))

#define RF_TLS __thread __attribute__((tls_model("initial-exec")))

/* A function that was entered and not left. */
struct rf_frame {
    uintptr_t pc;  /* where its caller goes on: what __tsan_func_entry was given */
    uint32_t node; /* the depot's node of the stack up to here; 0: not asked yet */
    uint32_t sp;   /* low half of the stack pointer at its entry: tells frames that a longjmp has left */
};

struct rf_self;

/* From here on, so many bytes; 0: none. A line of the cache for each, as another thread may be reading the next. */
struct rf_fresh {
    _Alignas(64) uintptr_t at;
    size_t size;
};

struct rf_hot {
    uint64_t base, span, base2;
    struct rf_frame *top;
    struct rf_self *self; /* NULL: a thread that the guest does not know yet */
    uint64_t first;
    uint64_t stamp;
    uint64_t *seen;
    uint32_t own; /* RF_ESCAPE_OWN and the state of the thread's private blocks, or 0: look closer (guest/escape.h, 6) */
    const struct rf_fresh *fresh; /* a block that is all the thread's own: guest/escape.h, 7. Never NULL */
    uintptr_t stack;              /* the thread's stack, while that is its own: the same, 8 */
    size_t stack_size;            /* ... or 0: look closer */
};

/* Of a thread that the guest does not know. */
extern uint64_t rf_seen_nothing[2 * RF_SEEN] RF_OURS;
extern const struct rf_fresh rf_fresh_nothing RF_OURS;
#define RF_HOT_NONE { .seen = rf_seen_nothing, .fresh = &rf_fresh_nothing }

/* Exported, as the plane is: code with hooks inlined (guest/inline/hooks.c) looks at it. */
extern RF_TLS struct rf_hot rf_hot __attribute__((visibility("default")));

/* Where such code, and the hooks that programs call, find the words: until the guest has started, one word of zeros. */
struct rf_plane {
    uintptr_t mask;
    uint64_t *words;
};
extern struct rf_plane rf_plane_now RF_OURS; /* exported as rf_plane: guest/start.c */

_Static_assert(offsetof(struct rf_hot, base) == RF_HOT_BASE && offsetof(struct rf_hot, span) == RF_HOT_SPAN &&
                   offsetof(struct rf_hot, base2) == RF_HOT_BASE2 && offsetof(struct rf_hot, top) == RF_HOT_TOP &&
                   offsetof(struct rf_hot, self) == RF_HOT_SELF && offsetof(struct rf_hot, first) == RF_HOT_FIRST &&
                   offsetof(struct rf_hot, stamp) == RF_HOT_STAMP && offsetof(struct rf_hot, seen) == RF_HOT_SEEN,
               "hooks.S");
#endif
#endif
