/* Random traces, and what the classic detectors must say of them, computed from the definitions in doc/semantics.md.
 *
 * 1. Every access is kept. Happens-before is a relation between events, closed by hand; sets of locks are bit masks, counted
 *    anew from the trace at each event. Nothing here shares a line, or an idea beyond the definitions, with detect/.
 * 2. Events have the numbers 1, 2, ...: event i of the array has number i + 1.
 */
#ifndef RF_TESTS_CLASSIC_MODEL_H
#define RF_TESTS_CLASSIC_MODEL_H

#include <string.h>

#include "core/detector.h"
#include "core/event.h"

enum { MAX = 64, THREADS = 6, LOCKS = 3, GRANULES = 3, BYTES = 8 * GRANULES };
enum { GENERIC, DJIT, LOCKSET, ERASER, MULTIRACE, DETECTORS };

struct model {
    struct rf_event e[MAX];
    int n;
    enum rf_transactions mode;
    bool copies;
    uint64_t random;

    uint64_t before[MAX]; /* bit i of before[j]: event i happens before event j */
    int group[MAX];       /* the COMMIT that an event belongs to; -1: none */
    uint32_t any[MAX], exclusive[MAX];

    int history[BYTES][MAX], length[BYTES]; /* the accesses in the present life of each byte, in order */
    uint32_t want[DETECTORS][MAX];          /* bit b: the event is reported for byte b */
    uint64_t conflicting[MAX][BYTES];       /* earlier accesses of other threads that conflict */
    uint64_t racing[MAX][BYTES];            /* those among them that race */
};

/* Two neighbouring granules, and one on another page. */
static inline uint64_t address_of(int byte)
{
    return byte < 16 ? 0x1000u + (uint64_t)byte : 0x40000u + (uint64_t)byte - 16;
}

static inline int byte_of(uint64_t addr)
{
    return addr < 0x40000 ? (int)(addr - 0x1000) : (int)(addr - 0x40000) + 16;
}

/* ---- random traces, always well-formed ---- */

static inline uint32_t pick(struct model *m, uint32_t below)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (uint32_t)((m->random >> 20) % below);
}

static inline void event_add(struct model *m, enum rf_op op, uint32_t thread, uint64_t addr, uint32_t size)
{
    m->e[m->n] =
        (struct rf_event){ .addr = addr, .thread = thread, .number = (uint32_t)m->n + 1, .size = size & 0xffffff, .op = op };
    m->n++;
}

static inline void access_add(struct model *m, uint32_t t, enum rf_op read, enum rf_op write)
{
    uint32_t size = pick(m, 4) ? 8 : 1u << pick(m, 3);
    int byte = (int)(8 * pick(m, GRANULES) + size * pick(m, 8 / size));
    event_add(m, pick(m, 2) ? write : read, t, address_of(byte), size);
}

struct holders {
    int writes[THREADS][LOCKS], reads[THREADS][LOCKS];
};

static inline void lock_add(struct model *m, struct holders *h, uint32_t t, uint32_t l)
{
    int other_writes = 0, other_reads = 0;
    for (uint32_t u = 0; u < THREADS; u++) {
        other_writes += u != t ? h->writes[u][l] : 0;
        other_reads += u != t ? h->reads[u][l] : 0;
    }
    bool again = pick(m, 4) == 0, shared = pick(m, 3) == 0;
    if (h->writes[t][l] && !again) {
        h->writes[t][l]--;
        event_add(m, RF_RELEASE, t, l, 0);
    } else if (h->reads[t][l] && (!again || !h->writes[t][l])) {
        h->reads[t][l]--;
        event_add(m, RF_READ_RELEASE, t, l, 0);
    } else if (shared && !other_writes) {
        h->reads[t][l]++;
        event_add(m, RF_READ_ACQUIRE, t, l, 0);
    } else if (!shared && !other_writes && !other_reads) {
        h->writes[t][l]++;
        event_add(m, RF_ACQUIRE, t, l, 0);
    }
}

static inline void memory_add(struct model *m, uint32_t t)
{
    static const uint32_t sizes[] = { 8, 8, 4, 1, 3, 16 };
    uint32_t size = sizes[pick(m, 6)];
    int from = size == 16 ? 0 : (int)(8 * pick(m, GRANULES) + pick(m, 9 - size)), to = (int)(8 * pick(m, GRANULES));
    if (pick(m, 2) || size == 16) {
        event_add(m, pick(m, 2) ? RF_ALLOC : RF_FREE, t, address_of(from), size);
    } else if (from / 8 != to / 8) {
        m->copies = true;
        event_add(m, RF_COPY, t, address_of(from), size);
        event_add(m, RF_COPY_TO, t, address_of(pick(m, 3) ? to + from % 8 : to), size);
    }
}

static inline void random_trace(struct model *m, uint64_t seed)
{
    enum { UNBORN, RUNNING, JOINED } state[THREADS] = { RUNNING, RUNNING };
    struct holders h;
    memset(m, 0, sizeof *m);
    memset(&h, 0, sizeof h);
    m->random = seed * 0x9e3779b97f4a7c15u + 1;
    m->mode = (enum rf_transactions)pick(m, 3);
    int goal = 8 + (int)pick(m, MAX - 12);
    bool quiet = pick(m, 2); /* half of the traces leave histories alone: longer lives */
    while (m->n < goal) {
        uint32_t t = pick(m, THREADS), u = pick(m, THREADS), kind = pick(m, 32);
        if (state[t] != RUNNING)
            continue;
        if (kind < 14) {
            access_add(m, t, RF_READ, RF_WRITE);
        } else if (kind < 23) {
            lock_add(m, &h, t, pick(m, LOCKS));
        } else if (kind < 25 && state[u] == UNBORN) {
            state[u] = RUNNING;
            event_add(m, RF_FORK, t, u, 0);
        } else if (kind == 25 && u != t && state[u] == RUNNING) {
            state[u] = JOINED;
            event_add(m, RF_JOIN, t, u, 0);
        } else if (kind < 28) {
            static const enum rf_op ops[] = { RF_VOLATILE_READ, RF_VOLATILE_WRITE, RF_SIGNAL, RF_WAIT };
            event_add(m, ops[pick(m, 4)], t, pick(m, 2), 0);
        } else if (kind < 30) {
            uint32_t parts = pick(m, 4);
            event_add(m, RF_COMMIT, t, 0, parts);
            for (uint32_t i = 0; i < parts; i++)
                access_add(m, t, RF_COMMIT_READ, RF_COMMIT_WRITE);
        } else if (!quiet) {
            memory_add(m, t);
        }
    }
}

/* ---- what orders what ---- */

static inline bool is_access(const struct rf_event *e)
{
    return e->op == RF_READ || e->op == RF_COMMIT_READ || rf_op_writes((enum rf_op)e->op);
}

/* Commit a is ordered before the later commit b. */
static inline bool commits_ordered(const struct model *m, int a, int b)
{
    if (m->mode == RF_TXN_ALL)
        return true;
    for (int i = a + 1; i <= a + (int)m->e[a].size; i++)
        for (int j = b + 1; j <= b + (int)m->e[b].size; j++)
            if (m->e[i].addr < m->e[j].addr + m->e[j].size && m->e[j].addr < m->e[i].addr + m->e[i].size &&
                (m->mode == RF_TXN_SHARED || (m->e[i].op == RF_COMMIT_WRITE && m->e[j].op == RF_COMMIT_READ)))
                return true;
    return false;
}

/* One row of the table in doc/semantics.md leads from a to the later b. */
static inline bool edge(const struct model *m, int a, int b)
{
    const struct rf_event *x = &m->e[a], *y = &m->e[b];
    if (x->thread == y->thread)
        return true;
    if (x->op == RF_FORK && (x->addr == y->thread || (y->op == RF_JOIN && y->addr == x->addr))) /* a thread may do nothing */
        return true;
    if (y->op == RF_JOIN && y->addr == x->thread)
        return true;
    if (m->group[a] >= 0 && y->op == RF_COMMIT)
        return commits_ordered(m, m->group[a], b);
    return x->addr == y->addr &&
           ((x->op == RF_RELEASE && (y->op == RF_ACQUIRE || y->op == RF_READ_ACQUIRE)) ||
            (x->op == RF_READ_RELEASE && y->op == RF_ACQUIRE) || (x->op == RF_VOLATILE_WRITE && y->op == RF_VOLATILE_READ) ||
            (x->op == RF_SIGNAL && y->op == RF_WAIT));
}

static inline void derive(struct model *m)
{
    int group = -1, group_end = -1;
    for (int j = 0; j < m->n; j++) {
        if (m->e[j].op == RF_COMMIT) {
            group = j;
            group_end = j + (int)m->e[j].size;
        }
        m->group[j] = j <= group_end ? group : -1;
        m->before[j] = 0;
        for (int i = 0; i < j; i++)
            if (edge(m, i, j))
                m->before[j] |= m->before[i] | UINT64_C(1) << i;
        for (int l = 0; l < LOCKS; l++) {
            int writes = 0, reads = 0;
            for (int i = 0; i < j; i++) {
                if (m->e[i].thread != m->e[j].thread || m->e[i].addr != (uint64_t)l)
                    continue;
                writes += (m->e[i].op == RF_ACQUIRE) - (m->e[i].op == RF_RELEASE);
                reads += (m->e[i].op == RF_READ_ACQUIRE) - (m->e[i].op == RF_READ_RELEASE);
            }
            m->any[j] |= (uint32_t)(writes + reads > 0) << l;
            m->exclusive[j] |= (uint32_t)(writes > 0) << l;
        }
    }
}

/* ---- what each detector must say of event i at byte b ---- */

enum { TRANSACTION_BIT = 1 << 30, READERS_BIT = 1 << 29 };

static inline bool writes(const struct model *m, int i)
{
    return rf_op_writes((enum rf_op)m->e[i].op);
}

static inline uint32_t protection(const struct model *m, int i)
{
    return (writes(m, i) ? m->exclusive[i] : m->any[i]) | (m->group[i] >= 0 ? TRANSACTION_BIT : 0);
}

/* The two events of one thread lie in one epoch: nothing between them hands knowledge on or bounds a transaction. */
static inline bool same_epoch(const struct model *m, int a, int i)
{
    if (m->group[a] != m->group[i])
        return false;
    for (int k = a + 1; k < i; k++) {
        enum rf_op op = (enum rf_op)m->e[k].op;
        if (m->e[k].thread == m->e[i].thread && (op == RF_RELEASE || op == RF_READ_RELEASE || op == RF_FORK ||
                                                 op == RF_VOLATILE_WRITE || op == RF_SIGNAL || op == RF_COMMIT))
            return false;
    }
    return true;
}

static inline void judge(struct model *m, int i, int b)
{
    uint32_t bit = 1u << b, all = UINT32_MAX, refined = UINT32_MAX;
    bool again = false, shared = false, modified = false;
    m->history[b][m->length[b]++] = i;
    for (int k = 0; k < m->length[b]; k++) {
        int a = m->history[b][k];
        bool other = m->e[a].thread != m->e[i].thread;
        if (other && (writes(m, i) || writes(m, a))) {
            m->conflicting[i][b] |= UINT64_C(1) << a;
            if (!(m->before[i] >> a & 1) && !(m->group[a] >= 0 && m->group[i] >= 0))
                m->racing[i][b] |= UINT64_C(1) << a;
        }
        if (a != i && !other && writes(m, a) == writes(m, i) && same_epoch(m, a, i))
            again = true;
        all &= protection(m, a) | (writes(m, a) ? 0 : READERS_BIT);
        shared |= m->e[a].thread != m->e[m->history[b][0]].thread;
        if (shared) {
            refined &= protection(m, a);
            modified |= writes(m, a);
        }
    }
    bool races = m->racing[i][b] != 0;
    m->want[GENERIC][i] |= races ? bit : 0;
    m->want[DJIT][i] |= races && !again ? bit : 0;
    m->want[LOCKSET][i] |= !all ? bit : 0;
    m->want[ERASER][i] |= modified && !refined ? bit : 0;
    m->want[MULTIRACE][i] |= races && !again && !refined ? bit : 0;
}

static inline void evaluate(struct model *m)
{
    derive(m);
    for (int i = 0; i < m->n; i++) {
        const struct rf_event *e = &m->e[i];
        bool ends = e->op == RF_ALLOC || e->op == RF_FREE;
        for (int k = 0; k < (int)e->size && (is_access(e) || ends); k++) {
            int b = byte_of(e->addr) + k;
            if (is_access(e) && !(e->op == RF_FREE && !m->length[b])) /* what was never accessed, freeing does not access */
                judge(m, i, b);
            if (ends)
                m->length[b] = 0;
        }
        for (int k = 0; k < (int)e->size && e->op == RF_COPY; k++) {
            int from = byte_of(e->addr) + k, to = byte_of(e[1].addr) + k;
            memcpy(m->history[to], m->history[from], sizeof m->history[to]);
            m->length[to] = m->length[from];
        }
    }
}

#endif
