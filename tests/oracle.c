/* See tests/oracle.h. */
#include "tests/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRANSACTION_BIT (UINT64_C(1) << 63) /* the fictitious lock of every transaction */

static void *oracle_must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* ---- sets of nodes ---- */

static uint64_t *set_new(struct oracle *o)
{
    uint64_t *set = o->pool + o->pool_used;
    o->pool_used += o->words;
    if (o->pool_used > o->pool_cap)
        abort();
    memset(set, 0, o->words * sizeof *set);
    return set;
}

static void set_add(uint64_t *set, uint32_t node)
{
    set[node / 64] |= UINT64_C(1) << (node % 64);
}

static void set_join(const struct oracle *o, uint64_t *into, const uint64_t *from)
{
    for (uint32_t i = 0; i < o->words; i++)
        into[i] |= from[i];
}

static void set_copy(const struct oracle *o, uint64_t *into, const uint64_t *from)
{
    memcpy(into, from, o->words * sizeof *into);
}

static void set_clear(const struct oracle *o, uint64_t *set)
{
    memset(set, 0, o->words * sizeof *set);
}

/* ---- bytes ---- */

uint32_t oracle_byte(const struct oracle *o, uint64_t addr)
{
    for (uint32_t i = 0; i < o->granule_count; i++)
        if (o->granules[i] == addr / RF_GRANULE)
            return i * RF_GRANULE + (uint32_t)(addr % RF_GRANULE);
    return UINT32_MAX;
}

uint64_t oracle_addr(const struct oracle *o, uint32_t byte)
{
    return o->granules[byte / RF_GRANULE] * RF_GRANULE + byte % RF_GRANULE;
}

static uint32_t byte_at(struct oracle *o, uint64_t addr)
{
    uint32_t byte = oracle_byte(o, addr);
    if (byte != UINT32_MAX)
        return byte;
    if (o->granule_count == ORACLE_GRANULES)
        abort();
    o->granules[o->granule_count++] = addr / RF_GRANULE;
    return oracle_byte(o, addr);
}

/* ---- the table of edges in doc/semantics.md ---- */

static bool share_byte(const struct rf_event *a, const struct rf_event *b)
{
    return a->addr < b->addr + b->size && b->addr < a->addr + a->size;
}

static bool commits_ordered(enum oracle_order order, const struct rf_event *a, const struct rf_event *b)
{
    if (order == ORACLE_ALL)
        return true;
    for (uint32_t i = 1; i <= a->size; i++)
        for (uint32_t j = 1; j <= b->size; j++)
            if (share_byte(&a[i], &b[j]) &&
                (order == ORACLE_SHARED || (a[i].op == RF_COMMIT_WRITE && b[j].op == RF_COMMIT_READ)))
                return true;
    return false;
}

/* Is there an edge from event a to the later event b? */
static bool edge(enum oracle_order order, const struct rf_event *a, const struct rf_event *b)
{
    bool accu = order == ORACLE_ACCU || order == ORACLE_ACCU_VOLATILE;
    if (a->thread == b->thread)
        return true;
    if (a->op == RF_FORK && a->addr == b->thread)
        return true;
    switch ((enum rf_op)b->op) {
    case RF_JOIN:
        return a->thread == b->addr || (a->op == RF_FORK && a->addr == b->addr);
    case RF_ACQUIRE:
        return !accu && (a->op == RF_RELEASE || a->op == RF_READ_RELEASE) && a->addr == b->addr;
    case RF_READ_ACQUIRE:
        return !accu && a->op == RF_RELEASE && a->addr == b->addr;
    case RF_VOLATILE_READ:
        return order != ORACLE_ACCU_VOLATILE && a->op == RF_VOLATILE_WRITE && a->addr == b->addr;
    case RF_WAIT:
        return a->op == RF_SIGNAL && a->addr == b->addr;
    case RF_COMMIT:
        return !accu && a->op == RF_COMMIT && commits_ordered(order, a, b);
    default:
        return false;
    }
}

/* A path ends with an edge from a to b; from the latest a backwards, those already known to come before b add nothing. */
static void close_order(struct oracle *o)
{
    for (uint32_t b = 0; b < o->node_count; b++) {
        uint64_t *before = o->nodes[b].before = set_new(o);
        for (uint32_t a = b; a-- > 0;)
            if (!oracle_has(before, a) && edge(o->order, o->nodes[a].event, o->nodes[b].event)) {
                set_add(before, a);
                set_join(o, before, o->nodes[a].before);
            }
    }
}

/* ---- locks held ---- */

static uint32_t lock_bit(struct oracle *o, uint64_t key)
{
    uint32_t bit = 0;
    while (bit < o->lock_count && o->lock_keys[bit] != key)
        bit++;
    if (bit == 63)
        abort();
    if (bit == o->lock_count)
        o->lock_keys[o->lock_count++] = key;
    return bit;
}

/* A lock protects an event if its thread acquired it, before, more often than it released it. */
static void hold_locks(struct oracle *o)
{
    o->lock_count = 0;
    for (uint32_t b = 0; b < o->node_count; b++) {
        const struct rf_event *event = o->nodes[b].event;
        int writes[63] = { 0 }, reads[63] = { 0 };
        o->nodes[b].any = o->nodes[b].exclusive = event->op == RF_COMMIT ? TRANSACTION_BIT : 0;
        for (uint32_t a = 0; a < b; a++) {
            const struct rf_event *e = o->nodes[a].event;
            if (e->thread != event->thread || e->op < RF_ACQUIRE || e->op > RF_READ_RELEASE)
                continue;
            int *counts = e->op == RF_ACQUIRE || e->op == RF_RELEASE ? writes : reads;
            counts[lock_bit(o, e->addr)] += e->op == RF_ACQUIRE || e->op == RF_READ_ACQUIRE ? 1 : -1;
        }
        for (uint32_t bit = 0; bit < o->lock_count; bit++) {
            o->nodes[b].any |= (uint64_t)(writes[bit] > 0 || reads[bit] > 0) << bit;
            o->nodes[b].exclusive |= (uint64_t)(writes[bit] > 0) << bit;
        }
    }
}

/* ---- races ---- */

/* The two conflict, and nothing orders them. */
static bool pair_races(const struct oracle *o, const struct oracle_node *a, bool a_writes, const struct oracle_node *b,
                       bool b_writes)
{
    if (!a_writes && !b_writes)
        return false;
    if (o->order != ORACLE_ACCU && o->order != ORACLE_ACCU_VOLATILE)
        return a->event->op != RF_COMMIT || b->event->op != RF_COMMIT;
    return !((a_writes ? a->exclusive : a->any) & (b_writes ? b->exclusive : b->any));
}

static void find_races(struct oracle *o, struct oracle_access *access)
{
    const struct oracle_node *b = &o->nodes[access->node];
    for (uint32_t w = 0; w <= access->node / 64; w++) {
        uint64_t unordered = (access->reads[w] | access->writers[w]) & ~b->before[w];
        if (w == access->node / 64)
            unordered &= ~(UINT64_C(1) << (access->node % 64));
        for (; unordered; unordered &= unordered - 1) {
            uint32_t a = w * 64 + (uint32_t)__builtin_ctzll(unordered);
            if ((oracle_has(access->writers, a) && pair_races(o, &o->nodes[a], true, b, access->writes)) ||
                (oracle_has(access->reads, a) && pair_races(o, &o->nodes[a], false, b, access->writes)))
                set_add(access->races, a);
        }
    }
}

struct past {
    uint64_t *reads, *writers;
    bool raced;
};

struct pasts {
    struct past of[ORACLE_BYTES];
};

static struct past *past_of(struct oracle *o, struct pasts *pasts, uint32_t byte)
{
    struct past *past = &pasts->of[byte];
    if (!past->reads) {
        past->reads = set_new(o);
        past->writers = set_new(o);
    }
    return past;
}

static void access_byte(struct oracle *o, struct pasts *pasts, uint32_t node, uint64_t addr, bool writes)
{
    uint32_t byte = byte_at(o, addr);
    struct past *past = past_of(o, pasts, byte);
    if (o->access_count == o->access_cap) {
        o->access_cap = o->access_cap ? 2 * o->access_cap : 1024;
        o->accesses = oracle_must(realloc(o->accesses, o->access_cap * sizeof *o->accesses));
    }
    struct oracle_access *access = &o->accesses[o->access_count++];
    *access = (struct oracle_access){ .node = node, .byte = byte, .writes = writes, .tainted = past->raced };
    access->reads = set_new(o);
    access->writers = set_new(o);
    access->races = set_new(o);
    set_copy(o, access->reads, past->reads);
    set_copy(o, access->writers, past->writers);
    find_races(o, access);
    for (uint32_t w = 0; w < o->words; w++)
        if (access->races[w]) {
            past->raced = true;
            if (o->first[byte] == ORACLE_NEVER)
                o->first[byte] = o->nodes[node].event->number;
        }
    set_add(writes ? past->writers : past->reads, node);
}

static void access_range(struct oracle *o, struct pasts *pasts, uint32_t node, const struct rf_event *event)
{
    for (uint32_t i = 0; i < event->size; i++)
        access_byte(o, pasts, node, event->addr + i, rf_op_writes((enum rf_op)event->op));
}

static void forget_range(struct oracle *o, struct pasts *pasts, const struct rf_event *event)
{
    for (uint32_t i = 0; i < event->size; i++) {
        struct past *past = past_of(o, pasts, byte_at(o, event->addr + i));
        set_clear(o, past->reads);
        set_clear(o, past->writers);
        past->raced = false;
    }
}

static bool has_commit(const struct oracle *o, const struct past *past)
{
    for (uint32_t node = 0; node < o->node_count; node++)
        if (o->nodes[node].event->op == RF_COMMIT && (oracle_has(past->reads, node) || oracle_has(past->writers, node)))
            return true;
    return false;
}

/* All at once: the two ranges may overlap. */
static void copy_range(struct oracle *o, struct pasts *pasts, const struct rf_event *event)
{
    uint32_t size = event->size;
    struct past *old = oracle_must(calloc(size + 1, sizeof *old));
    for (uint32_t i = 0; i < size; i++) {
        struct past *from = past_of(o, pasts, byte_at(o, event[0].addr + i));
        old[i] = (struct past){ set_new(o), set_new(o), from->raced };
        set_copy(o, old[i].reads, from->reads);
        set_copy(o, old[i].writers, from->writers);
    }
    for (uint32_t i = 0; i < size; i++) {
        uint32_t byte = byte_at(o, event[1].addr + i);
        pasts->of[byte] = old[i];
        if ((old[i].raced || (o->order < ORACLE_ACCU && o->order != ORACLE_ALL && has_commit(o, &old[i]))) &&
            o->clean[byte] > event->number)
            o->clean[byte] = event->number;
    }
    free(old);
}

static void run_node(struct oracle *o, struct pasts *pasts, uint32_t node)
{
    const struct rf_event *event = o->nodes[node].event;
    switch ((enum rf_op)event->op) {
    case RF_READ:
    case RF_WRITE:
        access_range(o, pasts, node, event);
        break;
    case RF_COMMIT:
        for (uint32_t i = 1; i <= event->size; i++)
            access_range(o, pasts, node, event + i);
        break;
    case RF_FREE:
        access_range(o, pasts, node, event);
        forget_range(o, pasts, event);
        break;
    case RF_ALLOC:
        forget_range(o, pasts, event);
        break;
    case RF_COPY:
        copy_range(o, pasts, event);
        break;
    default:
        break;
    }
}

/* Upper bound of the sets that a run makes. */
static size_t sets_needed(const struct rf_event *events, size_t count)
{
    size_t sets = count + 2 * ORACLE_BYTES;
    for (size_t i = 0; i < count; i++)
        switch ((enum rf_op)events[i].op) {
        case RF_READ:
        case RF_WRITE:
        case RF_COMMIT_READ:
        case RF_COMMIT_WRITE:
        case RF_FREE:
        case RF_COPY:
            sets += 3 * (size_t)events[i].size;
            break;
        default:
            break;
        }
    return sets;
}

void oracle_run(struct oracle *o, const struct rf_event *events, size_t count, enum oracle_order order)
{
    o->order = order;
    o->node_count = o->granule_count = o->access_count = 0;
    o->pool_used = 0;
    for (size_t i = 0; i < count; i++) {
        if (rf_op_kind((enum rf_op)events[i].op) == RF_PART)
            continue;
        if (o->node_count == ORACLE_NODES)
            abort();
        o->nodes[o->node_count++] = (struct oracle_node){ .event = &events[i] };
    }
    o->words = (o->node_count + 63) / 64;
    size_t words = sets_needed(events, count) * o->words;
    if (words > o->pool_cap) {
        free(o->pool);
        o->pool = oracle_must(malloc(words * sizeof *o->pool));
        o->pool_cap = words;
    }
    for (uint32_t i = 0; i < ORACLE_BYTES; i++)
        o->first[i] = o->clean[i] = ORACLE_NEVER;
    close_order(o);
    if (order == ORACLE_ACCU || order == ORACLE_ACCU_VOLATILE)
        hold_locks(o);
    static struct pasts pasts;
    memset(&pasts, 0, sizeof pasts);
    for (uint32_t node = 0; node < o->node_count; node++) {
        o->nodes[node].access = o->access_count;
        run_node(o, &pasts, node);
    }
    o->nodes[o->node_count].access = o->access_count;
}

void oracle_end(struct oracle *o)
{
    free(o->pool);
    free(o->accesses);
    memset(o, 0, sizeof *o);
}

/* ---- answers ---- */

static bool any_with_number(const struct oracle *o, const uint64_t *set, uint64_t number)
{
    for (uint32_t w = 0; w < o->words; w++)
        for (uint64_t left = set[w]; left; left &= left - 1)
            if (o->nodes[w * 64 + (uint32_t)__builtin_ctzll(left)].event->number == number)
                return true;
    return false;
}

/* The first node with a number not below this one; numbers never decrease. */
static uint32_t node_from(const struct oracle *o, uint64_t number)
{
    uint32_t low = 0, high = o->node_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (o->nodes[middle].event->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct oracle_access *oracle_find(const struct oracle *o, uint32_t byte, uint64_t number,
                                        const struct oracle_access *from)
{
    const struct oracle_access *access = from ? from : o->accesses + o->nodes[node_from(o, number)].access;
    for (; access < o->accesses + o->access_count && o->nodes[access->node].event->number == number; access++)
        if (access->byte == byte)
            return access;
    return NULL;
}

bool oracle_races(const struct oracle *o, uint64_t addr, uint64_t first, uint64_t second)
{
    uint32_t byte = oracle_byte(o, addr);
    const struct oracle_access *access = oracle_find(o, byte, second, NULL);
    for (; access; access = oracle_find(o, byte, second, access + 1))
        if (any_with_number(o, access->races, first))
            return true;
    return false;
}

bool oracle_met(const struct oracle *o, uint64_t addr, uint64_t first, uint64_t second)
{
    uint32_t byte = oracle_byte(o, addr);
    const struct oracle_access *access = oracle_find(o, byte, second, NULL);
    for (; access; access = oracle_find(o, byte, second, access + 1))
        for (uint32_t a = node_from(o, first); a < access->node && o->nodes[a].event->number == first; a++)
            if ((oracle_has(access->reads, a) || oracle_has(access->writers, a)) &&
                o->nodes[a].event->thread != o->nodes[access->node].event->thread)
                return true;
    return false;
}

void oracle_pairs(const struct oracle *o, oracle_pair_fn *found, void *context)
{
    for (uint32_t i = 0; i < o->access_count; i++)
        for (uint32_t a = 0; a < o->accesses[i].node; a++)
            if (oracle_has(o->accesses[i].races, a))
                found(context, &o->accesses[i], &o->nodes[a]);
}
