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

/* What of `more` is not in `set` yet is added to both `set` and `fresh`. */
static bool add_all(struct rf_set *set, const struct rf_set *more, struct rf_set *fresh)
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
        uint64_t added = 0;
        if (j == more->count || (i < set->count && set->words[i].index < more->words[j].index)) {
            word = set->words[i++];
        } else if (i == set->count || set->words[i].index > more->words[j].index) {
            word = more->words[j++];
            added = word.bits;
        } else {
            word = set->words[i++];
            added = more->words[j].bits & ~word.bits;
            word.bits |= more->words[j++].bits;
        }
        sum.words[sum.count++] = word;
        for (; added; added &= added - 1)
            rf_set_add(fresh, word.index * 64 + (uint32_t)__builtin_ctzll(added));
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

struct node {
    rf_node same;                                            /* this node became part of that one; itself otherwise */
    struct rf_set objects, fresh, to, shifts, loads, stores; /* what goes where: nodes */
    struct listener *listeners;
    bool waiting;
};

struct rf_points {
    struct node *nodes;
    size_t node_capacity, content_capacity, work_capacity;
    uint32_t node_count, object_count;
    rf_node *content; /* by object */
    struct {
        rf_object twin, whole; /* 0: it has none; it is none */
    } * twins;                 /* by object */
    size_t twin_capacity;
    rf_node *work;
    size_t work_begin, work_end;
    struct rf_set tried; /* hashes of edges along which a circle was looked for */
    uint64_t done;
};

struct rf_points *rf_points_new(void)
{
    struct rf_points *points = rf_zeroed(1, sizeof *points);
    rf_points_node(points);
    points->content = rf_reserve(NULL, &points->content_capacity, 1, sizeof *points->content);
    points->content[0] = 0;
    points->twins = rf_reserve(NULL, &points->twin_capacity, 1, sizeof *points->twins);
    memset(points->twins, 0, sizeof *points->twins);
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

rf_object rf_points_object(struct rf_points *points)
{
    rf_node content = rf_points_node(points);
    points->content =
        rf_reserve(points->content, &points->content_capacity, points->object_count + 1, sizeof *points->content);
    points->content[points->object_count] = content;
    points->twins = rf_reserve(points->twins, &points->twin_capacity, points->object_count + 1, sizeof *points->twins);
    memset(&points->twins[points->object_count], 0, sizeof *points->twins);
    return points->object_count++;
}

rf_object rf_points_twin(struct rf_points *points, rf_object object)
{
    if (!points->twins[object].twin) {
        rf_object twin = rf_points_object(points);
        points->content[twin] = points->content[object];
        points->twins[object].twin = twin;
        points->twins[twin].whole = object;
    }
    return points->twins[object].twin;
}

bool rf_points_is_beginning(const struct rf_points *points, rf_object object)
{
    return points->twins[object].twin != 0;
}

rf_object rf_points_whole(const struct rf_points *points, rf_object object)
{
    return points->twins[object].whole ? points->twins[object].whole : object;
}

static rf_node find(const struct rf_points *points, rf_node node)
{
    while (points->nodes[node].same != node) {
        points->nodes[node].same = points->nodes[points->nodes[node].same].same;
        node = points->nodes[node].same;
    }
    return node;
}

rf_node rf_points_content(const struct rf_points *points, rf_object object)
{
    return find(points, points->content[object]);
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

static bool grow(struct rf_points *points, rf_node node, const struct rf_set *more)
{
    if (!add_all(&points->nodes[node].objects, more, &points->nodes[node].fresh))
        return false;
    wait_for(points, node);
    return true;
}

void rf_points_add(struct rf_points *points, rf_node node, rf_object object)
{
    node = find(points, node);
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
        rf_node content = find(points, points->content[object]);
        rf_object anywhere = points->twins[object].twin ? points->twins[object].twin : object;
        RF_SET_EACH(&points->nodes[node].shifts, to)
        rf_points_add(points, to, anywhere);
        RF_SET_EACH(&points->nodes[node].loads, to)
        rf_points_copy(points, to, content);
        RF_SET_EACH(&points->nodes[node].stores, from)
        rf_points_copy(points, content, from);
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
