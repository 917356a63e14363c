/* See static/points.h. A worklist with differences: of a node that has grown, only what is new goes on. Nodes that include each other are
 * found when a difference has gone along an edge to no effect, and become one node. */
#include "static/points.h"

#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

/* ---- sets ---- */

static uint32_t place_of(const struct rf_set *set, uint32_t index)
{
    uint32_t low = 0, high = set->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (set->words[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void make_room(struct rf_set *set, uint32_t need)
{
    if (need <= set->capacity)
        return;
    set->capacity = need > 2 * set->capacity ? need : 2 * set->capacity;
    set->words = rf_resize(set->words, set->capacity * sizeof *set->words);
}

bool rf_set_add(struct rf_set *set, uint32_t member)
{
    uint32_t at = place_of(set, member / 64);
    uint64_t bit = UINT64_C(1) << member % 64;
    if (at < set->count && set->words[at].index == member / 64) {
        bool grows = !(set->words[at].bits & bit);
        set->words[at].bits |= bit;
        return grows;
    }
    make_room(set, set->count + 1);
    memmove(set->words + at + 1, set->words + at, (set->count - at) * sizeof *set->words);
    set->words[at] = (struct rf_set_word){ member / 64, bit };
    set->count++;
    return true;
}

bool rf_set_has(const struct rf_set *set, uint32_t member)
{
    uint32_t at = place_of(set, member / 64);
    return at < set->count && set->words[at].index == member / 64 && set->words[at].bits >> member % 64 & 1;
}

uint32_t rf_set_next(const struct rf_set *set, uint32_t from)
{
    for (uint32_t at = place_of(set, from / 64); at < set->count; at++) {
        uint64_t bits = set->words[at].bits;
        if (set->words[at].index == from / 64)
            bits &= UINT64_MAX << from % 64;
        if (bits)
            return set->words[at].index * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return UINT32_MAX;
}

bool rf_set_add_all(struct rf_set *set, const struct rf_set *more)
{
    struct rf_set sum = { NULL, 0, 0 };
    uint32_t i = 0, j = 0;
    bool grows = false;
    for (j = 0; j < more->count && !grows; j++) {
        uint32_t at = place_of(set, more->words[j].index);
        grows =
            at == set->count || set->words[at].index != more->words[j].index || more->words[j].bits & ~set->words[at].bits;
    }
    if (!grows)
        return false;
    make_room(&sum, set->count + more->count);
    for (i = j = 0; i < set->count || j < more->count;) {
        struct rf_set_word word;
        if (j == more->count || (i < set->count && set->words[i].index < more->words[j].index)) {
            word = set->words[i++];
        } else if (i == set->count || set->words[i].index > more->words[j].index) {
            word = more->words[j++];
        } else {
            word = set->words[i++];
            word.bits |= more->words[j++].bits;
        }
        sum.words[sum.count++] = word;
    }
    free(set->words);
    *set = sum;
    return true;
}

/* ---- nodes ---- */

struct listener {
    rf_points_heard *heard;
    void *context;
    struct listener *next;
};

/* An edge: what goes to a node, moved. */
struct move {
    rf_node to;
    uint32_t distance;
};

struct node {
    rf_node same;                                            /* this node became part of that one; itself otherwise */
    struct rf_set objects, fresh, to, shifts, loads, stores; /* what goes where: nodes */
    struct move *moves;
    size_t move_count, move_capacity;
    struct listener *listeners;
    bool waiting;
};

#define MOST_PLACES 256u             /* of one object */
#define FARTHEST ((uint32_t)1 << 20) /* from its beginning */

struct place {
    rf_object whole, anywhere; /* 0: no place; it has none */
    uint32_t distance, count;  /* of a whole: how many places it has */
    bool given;                /* of a whole: to code outside */
    rf_node held, kept;
};

struct rf_points {
    struct node *nodes;
    size_t node_capacity, place_capacity, work_capacity;
    uint32_t node_count, object_count;
    struct place *places; /* by object */
    rf_object *known;     /* places other than beginnings, by object and distance: a table */
    size_t known_capacity, known_count;
    rf_node *work;
    size_t work_begin, work_end;
    struct rf_set tried; /* hashes of edges along which a circle was looked for */
    rf_object outside;
    uint64_t done;
};

struct rf_points *rf_points_new(void)
{
    struct rf_points *points = rf_zeroed(1, sizeof *points);
    rf_points_node(points);
    points->places = rf_reserve(NULL, &points->place_capacity, 1, sizeof *points->places);
    memset(points->places, 0, sizeof *points->places);
    points->object_count = 1;
    return points;
}

rf_node rf_points_node(struct rf_points *points)
{
    points->nodes = rf_reserve(points->nodes, &points->node_capacity, points->node_count + 1, sizeof *points->nodes);
    memset(&points->nodes[points->node_count], 0, sizeof *points->nodes);
    points->nodes[points->node_count].same = points->node_count;
    return points->node_count++;
}

static rf_object add_object(struct rf_points *points, struct place place)
{
    points->places = rf_reserve(points->places, &points->place_capacity, points->object_count + 1, sizeof *points->places);
    points->places[points->object_count] = place;
    return points->object_count++;
}

rf_object rf_points_object(struct rf_points *points)
{
    rf_node content = rf_points_node(points);
    return add_object(points, (struct place){ .held = content, .kept = content });
}

rf_object rf_points_outside(struct rf_points *points)
{
    rf_node held = rf_points_node(points), kept = rf_points_node(points);
    rf_object outside = add_object(points, (struct place){ .held = held, .kept = kept });
    rf_points_add(points, held, outside);
    points->outside = outside;
    return outside;
}

/* What is stored anywhere may be held here, and this is held by anywhere. */
static rf_node content_of_place(struct rf_points *points, rf_object anywhere)
{
    rf_node content = rf_points_node(points);
    rf_points_copy(points, content, points->places[anywhere].kept);
    rf_points_copy(points, points->places[anywhere].held, content);
    return content;
}

rf_object rf_points_memory(struct rf_points *points)
{
    rf_node held = rf_points_node(points), kept = rf_points_node(points);
    rf_object whole = add_object(points, (struct place){ .count = 1 });
    rf_object anywhere =
        add_object(points, (struct place){ .whole = whole, .distance = RF_ANYWHERE, .held = held, .kept = kept });
    rf_points_copy(points, held, kept);
    rf_node content = content_of_place(points, anywhere);
    points->places[whole].anywhere = anywhere;
    points->places[whole].held = points->places[whole].kept = content;
    return whole;
}

rf_object rf_points_whole(const struct rf_points *points, rf_object object)
{
    return points->places[object].whole ? points->places[object].whole : object;
}

rf_object rf_points_anywhere(const struct rf_points *points, rf_object object)
{
    rf_object anywhere = points->places[rf_points_whole(points, object)].anywhere;
    return anywhere ? anywhere : object;
}

uint32_t rf_points_distance(const struct rf_points *points, rf_object object)
{
    return points->places[object].whole || points->places[object].anywhere ? points->places[object].distance : RF_ANYWHERE;
}

static size_t known_slot(const struct rf_points *points, rf_object whole, uint32_t distance)
{
    size_t at =
        (size_t)((((uint64_t)whole << 32) + distance) * UINT64_C(0x9e3779b97f4a7c15) >> 24) & (points->known_capacity - 1);
    for (rf_object there; (there = points->known[at]) != 0; at = (at + 1) & (points->known_capacity - 1))
        if (points->places[there].whole == whole && points->places[there].distance == distance)
            break;
    return at;
}

static void grow_known(struct rf_points *points)
{
    rf_object *old = points->known;
    size_t capacity = points->known_capacity;
    points->known_capacity = capacity ? 2 * capacity : 1024;
    points->known = rf_zeroed(points->known_capacity, sizeof *points->known);
    for (size_t i = 0; i < capacity; i++)
        if (old[i])
            points->known[known_slot(points, points->places[old[i]].whole, points->places[old[i]].distance)] = old[i];
    free(old);
}

rf_object rf_points_place(struct rf_points *points, rf_object object, uint32_t distance)
{
    rf_object whole = rf_points_whole(points, object), anywhere = points->places[whole].anywhere;
    uint32_t from = points->places[object].distance;
    if (!anywhere || object == anywhere || !distance)
        return object;
    if (distance > FARTHEST || from + distance > FARTHEST)
        return anywhere;
    if (2 * (points->known_count + 1) > points->known_capacity)
        grow_known(points);
    size_t at = known_slot(points, whole, from + distance);
    if (points->known[at])
        return points->known[at];
    if (points->places[whole].count >= MOST_PLACES)
        return anywhere;
    struct place place = points->places[anywhere];
    place.distance = from + distance;
    if (place.distance % 8 == 0)
        place.held = place.kept = content_of_place(points, anywhere);
    points->places[whole].count++;
    points->known_count++;
    return points->known[at] = add_object(points, place);
}

static rf_node find(const struct rf_points *points, rf_node node)
{
    while (points->nodes[node].same != node) {
        points->nodes[node].same = points->nodes[points->nodes[node].same].same;
        node = points->nodes[node].same;
    }
    return node;
}

rf_node rf_points_held(const struct rf_points *points, rf_object object)
{
    return find(points, points->places[object].held);
}

rf_node rf_points_kept(const struct rf_points *points, rf_object object)
{
    return find(points, points->places[object].kept);
}

const struct rf_set *rf_points_of(const struct rf_points *points, rf_node node)
{
    return &points->nodes[find(points, node)].objects;
}

uint32_t rf_points_nodes(const struct rf_points *points)
{
    return points->node_count;
}

uint32_t rf_points_objects(const struct rf_points *points)
{
    return points->object_count;
}

/* A queue, so that a node is looked at again only after all others that wait. */
static void wait_for(struct rf_points *points, rf_node node)
{
    if (points->nodes[node].waiting)
        return;
    points->nodes[node].waiting = true;
    if (points->work_end == points->work_capacity && points->work_begin > points->work_end / 2) {
        memmove(points->work, points->work + points->work_begin,
                (points->work_end - points->work_begin) * sizeof *points->work);
        points->work_end -= points->work_begin;
        points->work_begin = 0;
    }
    points->work = rf_reserve(points->work, &points->work_capacity, points->work_end + 1, sizeof *points->work);
    points->work[points->work_end++] = node;
}

/* Does the set have it, though not by its name? Invariant 6. */
static bool is_covered(const struct rf_points *points, const struct rf_set *set, bool outside, rf_object object)
{
    rf_object anywhere = rf_points_anywhere(points, object);
    return (outside && points->places[rf_points_whole(points, object)].given) ||
           (anywhere != object && rf_set_has(set, anywhere));
}

static bool grow(struct rf_points *points, rf_node node, const struct rf_set *more)
{
    struct rf_set *set = &points->nodes[node].objects, added = { NULL, 0, 0 };
    bool outside = rf_set_has(set, points->outside);
    uint32_t at = 0;
    for (uint32_t i = 0; i < more->count; i++) {
        struct rf_set_word word = more->words[i];
        while (at < set->count && set->words[at].index < word.index)
            at++;
        if (at < set->count && set->words[at].index == word.index)
            word.bits &= ~set->words[at].bits;
        for (uint64_t left = word.bits; left; left &= left - 1)
            if (is_covered(points, set, outside, word.index * 64 + (uint32_t)__builtin_ctzll(left)))
                word.bits &= ~(left & -left);
        if (!word.bits)
            continue;
        make_room(&added, added.count + 1);
        added.words[added.count++] = word;
    }
    if (!added.count)
        return false;
    rf_set_add_all(set, &added);
    rf_set_add_all(&points->nodes[node].fresh, &added);
    free(added.words);
    wait_for(points, node);
    return true;
}

void rf_points_give(struct rf_points *points, rf_object object)
{
    points->places[rf_points_whole(points, object)].given = true;
    rf_object anywhere = rf_points_anywhere(points, object);
    rf_points_copy(points, points->places[points->outside].kept, points->places[anywhere].held);
    rf_points_copy(points, points->places[anywhere].kept, points->places[points->outside].held);
}

void rf_points_add(struct rf_points *points, rf_node node, rf_object object)
{
    node = find(points, node);
    const struct rf_set *set = &points->nodes[node].objects;
    if (is_covered(points, set, rf_set_has(set, points->outside), object))
        return;
    if (rf_set_add(&points->nodes[node].objects, object)) {
        rf_set_add(&points->nodes[node].fresh, object);
        wait_for(points, node);
    }
}

void rf_points_copy(struct rf_points *points, rf_node to, rf_node from)
{
    to = find(points, to);
    from = find(points, from);
    if (to && from && to != from && rf_set_add(&points->nodes[from].to, to))
        grow(points, to, &points->nodes[from].objects);
}

/* A new edge must hear what was there before it: all of the node is new again. */
static void again(struct rf_points *points, rf_node node)
{
    if (!points->nodes[node].objects.count)
        return;
    RF_SET_EACH(&points->nodes[node].objects, object)
    rf_set_add(&points->nodes[node].fresh, object);
    wait_for(points, node);
}

void rf_points_shift(struct rf_points *points, rf_node to, rf_node from)
{
    from = find(points, from);
    if (to && from && rf_set_add(&points->nodes[from].shifts, to))
        again(points, from);
}

void rf_points_move(struct rf_points *points, rf_node to, rf_node from, uint32_t distance)
{
    from = find(points, from);
    struct node *node = &points->nodes[from];
    node->moves = rf_reserve(node->moves, &node->move_capacity, node->move_count + 1, sizeof *node->moves);
    node->moves[node->move_count++] = (struct move){ to, distance };
    again(points, from);
}

void rf_points_load(struct rf_points *points, rf_node to, rf_node pointer)
{
    pointer = find(points, pointer);
    if (to && pointer && rf_set_add(&points->nodes[pointer].loads, to))
        again(points, pointer);
}

void rf_points_store(struct rf_points *points, rf_node pointer, rf_node from)
{
    pointer = find(points, pointer);
    if (from && pointer && rf_set_add(&points->nodes[pointer].stores, from))
        again(points, pointer);
}

void rf_points_listen(struct rf_points *points, rf_node node, rf_points_heard *heard, void *context)
{
    node = find(points, node);
    struct listener *listener = rf_zeroed(1, sizeof *listener);
    *listener = (struct listener){ heard, context, points->nodes[node].listeners };
    points->nodes[node].listeners = listener;
    RF_SET_EACH(&points->nodes[node].objects, object)
    heard(context, object);
}

/* ---- circles ---- */

static void unite(struct rf_points *points, rf_node into, rf_node other)
{
    struct node *from = &points->nodes[other], *to = &points->nodes[into];
    struct listener *first = from->listeners, **last = &to->listeners;
    from->same = into;
    /* Each side has not heard what the other had. */
    RF_SET_EACH(&from->to, node)
    rf_set_add(&to->to, node);
    RF_SET_EACH(&from->shifts, node)
    rf_set_add(&to->shifts, node);
    RF_SET_EACH(&from->loads, node)
    rf_set_add(&to->loads, node);
    RF_SET_EACH(&from->stores, node)
    rf_set_add(&to->stores, node);
    RF_SET_EACH(&from->objects, object)
    rf_set_add(&to->objects, object);
    to->moves = rf_reserve(to->moves, &to->move_capacity, to->move_count + from->move_count + 1, sizeof *to->moves);
    for (size_t i = 0; i < from->move_count; i++)
        to->moves[to->move_count++] = from->moves[i];
    while (*last)
        last = &(*last)->next;
    *last = first;
    from->listeners = NULL;
    again(points, into);
    free(from->to.words);
    free(from->shifts.words);
    free(from->loads.words);
    free(from->stores.words);
    free(from->objects.words);
    free(from->fresh.words);
    free(from->moves);
    from->moves = NULL;
    from->move_count = from->move_capacity = 0;
    from->to = from->shifts = from->loads = from->stores = from->objects = from->fresh = (struct rf_set){ NULL, 0, 0 };
}

/* Depth first from `from` over copies, without recursion; if `target` is reached, the path to it is one circle. */
static void close_circle(struct rf_points *points, rf_node from, rf_node target)
{
    struct step {
        rf_node node;
        uint32_t next;
    } *path = NULL;
    size_t capacity = 0, depth = 0, budget = 4096;
    struct rf_set seen = { NULL, 0, 0 };
    path = rf_reserve(path, &capacity, 1, sizeof *path);
    path[depth++] = (struct step){ from, 0 };
    rf_set_add(&seen, from);
    while (depth && budget--) {
        struct step *top = &path[depth - 1];
        uint32_t to = rf_set_next(&points->nodes[top->node].to, top->next);
        if (to == UINT32_MAX) {
            depth--;
            continue;
        }
        top->next = to + 1;
        to = find(points, to);
        if (to == target) {
            for (size_t i = 0; i < depth; i++)
                if (find(points, path[i].node) != target)
                    unite(points, target, find(points, path[i].node));
            break;
        }
        if (rf_set_add(&seen, to)) {
            path = rf_reserve(path, &capacity, depth + 1, sizeof *path);
            path[depth++] = (struct step){ to, 0 };
        }
    }
    free(seen.words);
    free(path);
}

static bool not_tried(struct rf_points *points, rf_node from, rf_node to)
{
    return rf_set_add(&points->tried, (from * 2654435761u ^ to * 2246822519u) & 0xffffff);
}

/* ---- solving ---- */

static void step(struct rf_points *points, rf_node node)
{
    struct rf_set fresh = points->nodes[node].fresh;
    points->nodes[node].fresh = (struct rf_set){ NULL, 0, 0 };
    points->nodes[node].waiting = false;
    RF_SET_EACH(&fresh, object)
    {
        RF_SET_EACH(&points->nodes[node].shifts, to)
        rf_points_add(points, to, rf_points_anywhere(points, object));
        for (size_t i = 0; i < points->nodes[node].move_count; i++) {
            struct move move = points->nodes[node].moves[i];
            rf_points_add(points, move.to, rf_points_place(points, object, move.distance));
        }
        RF_SET_EACH(&points->nodes[node].loads, to)
        rf_points_copy(points, to, rf_points_held(points, object));
        RF_SET_EACH(&points->nodes[node].stores, from)
        rf_points_copy(points, rf_points_kept(points, object), from);
        for (struct listener *listener = points->nodes[node].listeners; listener; listener = listener->next)
            listener->heard(listener->context, object);
        if (find(points, node) != node)
            break; /* it became part of another, which has all of it to tell */
    }
    RF_SET_EACH(&points->nodes[node].to, edge)
    {
        rf_node to = find(points, edge);
        if (to == find(points, node))
            continue;
        if (!grow(points, to, &fresh) && points->nodes[to].objects.count == points->nodes[node].objects.count &&
            not_tried(points, node, to))
            close_circle(points, to, node);
        if (find(points, node) != node)
            break;
    }
    free(fresh.words);
}

void rf_points_solve(struct rf_points *points, void (*progress)(uint64_t, uint64_t))
{
    while (points->work_begin < points->work_end) {
        rf_node node = points->work[points->work_begin++];
        if (find(points, node) == node)
            step(points, node);
        if (progress && (++points->done & 0xfff) == 0)
            progress(points->done, points->work_end - points->work_begin);
    }
}
