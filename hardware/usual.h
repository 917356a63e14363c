/* The usual machine: the simulator is compiled twice, once for any machine and once for machines of the default's form, where what
 * all of them have in common are constants (hardware/usual.c).
 *
 * 1. Both copies work on the same data and do the same to it. So it does not matter which of them does what; it matters for speed.
 * 2. Of the usual form are lines of 64 bytes and pages of 4096, private caches of 8 ways and a common one of 16, up to 8 cores, and the
 *    full encoding. Sizes, latencies and all else may differ. No rule is broken.
 * 3. What the files of this room share is declared RF_ROOM: in the second copy, which is one file, it is that file's own.
 */
#ifndef RF_HARDWARE_USUAL_H
#define RF_HARDWARE_USUAL_H

#ifndef RF_USUAL
#define RF_USUAL 0
#endif

#if RF_USUAL
#define RF_ROOM static __attribute__((unused))
#else
#define RF_ROOM
#endif

/* What hardly ever, or nearly always, holds where the simulator is slowest (bench/kernels/hash.c, by gcov). Much of it is for what is rare
 * there: standing between the rest it would be fetched by the host each time. */
#define RF_RARELY(condition) __builtin_expect_with_probability(!!(condition), 0, 0.99)
#define RF_MOSTLY(condition) __builtin_expect_with_probability(!!(condition), 1, 0.99)

/* What nearly every event goes through is part of whoever calls it: a compiler does not know how often that is. */
#define RF_HOT static inline __attribute__((always_inline))

/* What is rare and long is a function of its own. */
#define RF_APART __attribute__((noinline))

#define RF_USUAL_LINE 64u
#define RF_USUAL_PAGE 4096u
#define RF_USUAL_WAYS 8u
#define RF_USUAL_LLC_WAYS 16u
#define RF_USUAL_CORES 8u

#endif
