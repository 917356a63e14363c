/* Lock-order inversion: two or more threads that take locks in a circle may wait for each other for ever, in another run than this.
 *
 * 1. An edge a -> b: b was waited for while a was held. Its cases tell by whom, with which locks held in all, and where. Cases that
 *    differ in nothing but the place are one.
 * 2. A circle of edges is an inversion if there is a case for each such that
 *      - all are of different threads: one that is alone, or comes twice, cannot wait for itself (deadlock_single_thread: never mind);
 *      - no lock is held in two of them, except for reading in both: such a gate lets one in at a time;
 *      - each lock is held or wanted for writing where two of its edges meet: readers do not wait for readers.
 * 3. A circle, which is a set of locks, is reported once.
 * 4. What is new is looked at when it comes: a circle is found by the case that closes it. A search that takes more than STEPS is
 *    given up, and counted.
 * 5. All of it is under one lock, which is taken inside those of objects and outside that of sets (guest/locks.c).
 */
#include "core/map.h"
#include "guest/locks.h"
#include "guest/memory.h"
#include "guest/options.h"
#include "guest/report.h"
#include "guest/spin.h"
#include "guest/threads.h"

#define STEPS 50000u
#define SAME_CASES 8u /* threads that are told apart for one edge and one set: more do not make other circles */

struct place_case {
    struct place_case *next, *next_same; /* of the edge; of those that differ in the thread alone */
    uint32_t thread, set;
    uint32_t held_note, wanted_note;
    bool from_read, to_read;
};

struct edge {
    uint32_t from, to;
    uint32_t number; /* never used again for another */
    struct edge *next_out, *next_in;
    struct place_case *cases;
};

struct node {
    struct edge *out, *in;
    uint32_t seen; /* the search that came by */
    uint32_t lives; /* how many locks of this number were forgotten */
};

static uint32_t lock;
static struct rf_memory memory;
static struct node *nodes; /* by the lock's number */
static uint32_t node_cap;
static struct rf_map edges;    /* from, to -> struct edge * */
static struct rf_map alike;    /* key_of() -> the first of the cases that differ in the thread alone */
static uint32_t edge_count;
static struct rf_map reported; /* hash of the locks of a circle */
static uint32_t searches;
static uint64_t given_up;
uint32_t rf_lock_order_changes;

/* The path of the search: an edge and one of its cases for each step. */
static struct step {
    struct edge *edge;
    struct place_case *at;
} *path;
static uint32_t path_len, path_cap, steps;

static struct node *node_at(uint32_t number)
{
    if (!memory.pieces) {
        rf_memory_begin(&memory);
        rf_map_init(&edges, &memory);
        rf_map_init(&alike, &memory);
        rf_map_init(&reported, &memory);
    }
    nodes = rf_grow(&memory, nodes, &node_cap, (size_t)number + 1, sizeof *nodes);
    return &nodes[number];
}

static struct edge *edge_at(uint32_t from, uint32_t to)
{
    node_at(from > to ? from : to);
    uint64_t *place = rf_map_at(&edges, (uint64_t)from << 32 | to);
    if (!*place) {
        struct edge *edge = rf_alloc(&memory, sizeof *edge);
        edge->number = ++edge_count;
        edge->from = from;
        edge->to = to;
        edge->next_out = nodes[from].out;
        nodes[from].out = edge;
        edge->next_in = nodes[to].in;
        nodes[to].in = edge;
        *place = (uint64_t)(uintptr_t)edge;
    }
    return (struct edge *)(uintptr_t)*place;
}

/* A lock that is taken inside thousands of others has thousands of cases: they are not gone through. */
static uint64_t key_of(const struct edge *edge, const struct place_case *c)
{
    return ((uint64_t)edge->number << 2 | (uint64_t)c->from_read << 1 | c->to_read) << 32 | c->set;
}

/* NULL: it is nothing new. */
static struct place_case *add_case(struct edge *edge, const struct place_case *wanted)
{
    unsigned same = 0;
    uint64_t *first = rf_map_at(&alike, key_of(edge, wanted));
    for (const struct place_case *c = (const struct place_case *)(uintptr_t)*first; c; c = c->next_same)
        if (c->thread == wanted->thread || ++same == SAME_CASES)
            return NULL;
    struct place_case *c = rf_alloc(&memory, sizeof *c);
    *c = *wanted;
    c->next = edge->cases;
    c->next_same = (struct place_case *)(uintptr_t)*first;
    edge->cases = c;
    *first = (uint64_t)(uintptr_t)c;
    return c;
}

/* Marks what can be reached, looking at each node once: seen == searches. */
static void mark_reachable(uint32_t from)
{
    uint32_t *stack = NULL, count = 0, cap = 0;
    node_at(from);
    searches++;
    stack = rf_grow(&memory, stack, &cap, 16, sizeof *stack);
    stack[count++] = from;
    nodes[from].seen = searches;
    while (count)
        for (const struct edge *e = nodes[stack[--count]].out; e; e = e->next_out) {
            if (nodes[e->to].seen == searches)
                continue;
            nodes[e->to].seen = searches;
            stack = rf_grow(&memory, stack, &cap, count + 1, sizeof *stack);
            stack[count++] = e->to;
        }
    rf_free(&memory, stack, cap * sizeof *stack);
}

/* Invariant 2, for one more step. */
static bool fits(const struct edge *edge, const struct place_case *c)
{
    const struct step *last = &path[path_len - 1];
    if (last->at->to_read && c->from_read)
        return false;
    if (edge->to == path[0].edge->from && c->to_read && path[0].at->from_read)
        return false;
    for (uint32_t i = 0; i < path_len; i++) {
        if (path[i].edge->from == edge->from)
            return false; /* a circle inside: it is found by itself */
        if (path[i].at->thread == c->thread && !rf_options.deadlock_single_thread)
            return false;
        if (rf_locks_exclude(path[i].at->set, c->set))
            return false;
    }
    return true;
}

static uint64_t circle_hash(void)
{
    uint64_t hash = path_len; /* the same from wherever it starts */
    for (uint32_t i = 0; i < path_len; i++)
        hash += rf_hash(path[i].edge->from | (uint64_t)(nodes[path[i].edge->from].lives + 1) << 32);
    return hash >> 1;
}

/* From the end of the path back to its start. Depth first; circles are short, and paths are as long as the longest nesting. */
static bool close_circle(void)
{
    uint32_t goal = path[0].edge->from, here = path[path_len - 1].edge->to;
    if (here == goal) {
        uint64_t *known = rf_map_at(&reported, circle_hash());
        if (*known)
            return false;
        *known = 1;
        return true;
    }
    for (struct edge *e = nodes[here].out; e; e = e->next_out)
        for (struct place_case *c = e->cases; c; c = c->next) {
            if (++steps > STEPS)
                return false;
            if (!fits(e, c))
                continue;
            path = rf_grow(&memory, path, &path_cap, path_len + 1, sizeof *path);
            path[path_len++] = (struct step){ e, c };
            if (close_circle())
                return true;
            path_len--;
        }
    return false;
}

/* What a report needs, so that it can be made without the lock. */
struct circle {
    unsigned count;
    uint32_t *numbers; /* four arrays, one after the other */
};

static bool find_circle(struct edge *edge, struct place_case *c, struct circle *circle)
{
    path = rf_grow(&memory, path, &path_cap, 1, sizeof *path);
    path[0] = (struct step){ edge, c };
    path_len = 1;
    steps = 0;
    bool found = close_circle();
    if (steps > STEPS)
        given_up++;
    if (!found)
        return false;
    circle->count = path_len;
    circle->numbers = rf_take(4 * path_len * sizeof(uint32_t));
    for (uint32_t i = 0; i < path_len; i++) {
        circle->numbers[i] = path[i].edge->from;
        circle->numbers[path_len + i] = path[i].at->held_note;
        circle->numbers[2 * path_len + i] = path[i].at->wanted_note;
        circle->numbers[3 * path_len + i] = path[i].at->thread;
    }
    return true;
}

static void report(struct rf_self *self, struct circle *circle)
{
    unsigned count = circle->count;
    rf_busy_begin(self);
    uintptr_t *locks = rf_take(count * sizeof *locks);
    uint32_t *created = rf_take(count * sizeof *created);
    rf_busy_end(self);
    for (unsigned i = 0; i < count; i++) {
        locks[i] = rf_lock_address(circle->numbers[i]);
        const struct rf_object *object = rf_object_look(locks[i]);
        created[i] = object ? object->created : 0;
    }
    self->inside++;
    rf_report_lock_order(count, locks, created, circle->numbers + count, circle->numbers + 2 * count, circle->numbers + 3 * count);
    self->inside--;
    rf_busy_begin(self);
    rf_give(locks, count * sizeof *locks);
    rf_give(created, count * sizeof *created);
    rf_give(circle->numbers, 4 * count * sizeof(uint32_t));
    rf_busy_end(self);
}

/* A thread holds few locks, or takes many in one order: it is cheap to find that no edge closes a circle. */
void rf_lock_order_wanted(struct rf_self *self, const struct rf_held_now *held, unsigned count, uint32_t number, bool read,
                          uint32_t note)
{
    bool marked = false;
    rf_busy_begin(self);
    rf_spin_lock(&lock);
    for (unsigned i = 0; i < count; i++) {
        struct circle circle = { 0 };
        if (held[i].number == number)
            continue;
        struct edge *edge = edge_at(held[i].number, number);
        struct place_case wanted = { .thread = self->number, .set = self->locks, .held_note = held[i].note, .wanted_note = note,
                                     .from_read = held[i].read, .to_read = read };
        struct place_case *c = add_case(edge, &wanted);
        if (!c || !nodes[held[i].number].in) /* nothing leads to it: no circle, and those that it leads to may be thousands */
            continue;
        if (!marked)
            mark_reachable(number);
        marked = true;
        if (nodes[held[i].number].seen != searches || !find_circle(edge, c, &circle))
            continue;
        rf_spin_unlock(&lock);
        rf_busy_end(self);
        report(self, &circle);
        rf_busy_begin(self);
        rf_spin_lock(&lock);
        marked = false; /* others may have been here */
    }
    rf_spin_unlock(&lock);
    rf_busy_end(self);
}

static void edge_end(struct edge *edge)
{
    for (struct place_case *c = edge->cases, *next; c; c = next) {
        next = c->next;
        rf_map_remove(&alike, key_of(edge, c));
        rf_free(&memory, c, sizeof *c);
    }
    rf_map_remove(&edges, (uint64_t)edge->from << 32 | edge->to);
    rf_free(&memory, edge, sizeof *edge);
}

/* The lock is gone; at its address there may be another one, which has nothing to do with it. */
void rf_lock_order_forget(uint32_t number)
{
    rf_spin_lock(&lock);
    struct node *node = number < node_cap ? &nodes[number] : NULL;
    if (node && (node->out || node->in)) {
        for (struct edge *e = node->out, *next; e; e = next) {
            next = e->next_out;
            struct edge **place = &nodes[e->to].in;
            while (*place != e)
                place = &(*place)->next_in;
            *place = e->next_in;
            edge_end(e);
        }
        for (struct edge *e = node->in, *next; e; e = next) {
            next = e->next_in;
            struct edge **place = &nodes[e->from].out;
            while (*place != e)
                place = &(*place)->next_out;
            *place = e->next_out;
            edge_end(e);
        }
        node->out = node->in = NULL;
        node->lives++;
        __atomic_fetch_add(&rf_lock_order_changes, 1, __ATOMIC_RELAXED);
    }
    rf_spin_unlock(&lock);
}

void rf_lock_order_fork_before(void)
{
    rf_spin_lock(&lock);
}

void rf_lock_order_fork_after(void)
{
    rf_spin_unlock(&lock);
}
