/* Kinds of accesses for MultiLock-HB, as bits: plain ones, and atomic loads and stores, which race with plain accesses and not with each
 * other.
 */
#ifndef RF_DETECT_KINDS_H
#define RF_DETECT_KINDS_H

#define ML_WRITE 1u
#define ML_READ 2u
#define ML_STORE 4u
#define ML_LOAD 8u

/* What a kind conflicts with; the kinds that are fit to stand for it (whatever conflicts with it conflicts with them, too), and those
 * that it is fit to stand for. A store does not stand for a read, since another store conflicts with the read alone. */
#define ML_CONFLICTS(kind)                                                                                                  \
    ((kind) == ML_WRITE  ? ML_WRITE | ML_READ | ML_STORE | ML_LOAD                                                          \
     : (kind) == ML_READ ? ML_WRITE | ML_STORE                                                                              \
     : (kind) == ML_STORE ? ML_WRITE | ML_READ                                                                              \
                          : ML_WRITE)
#define ML_FIT(kind)                                                                                                        \
    ((kind) == ML_WRITE  ? ML_WRITE                                                                                         \
     : (kind) == ML_READ ? ML_WRITE | ML_READ                                                                               \
     : (kind) == ML_STORE ? ML_WRITE | ML_STORE                                                                             \
                          : ML_WRITE | ML_READ | ML_STORE | ML_LOAD)
#define ML_FIT_FOR(kind)                                                                                                    \
    ((kind) == ML_WRITE  ? ML_WRITE | ML_READ | ML_STORE | ML_LOAD                                                          \
     : (kind) == ML_READ ? ML_READ | ML_LOAD                                                                                \
     : (kind) == ML_STORE ? ML_STORE | ML_LOAD                                                                              \
                          : ML_LOAD)

#define ML_PETALS 16u /* detect/multilock.h, 6 */

#endif
