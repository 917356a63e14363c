/* See static/pairs.h.
 *
 * 1. What matters of an access is its manner (who does it, beside whom, and whether it writes), which bytes behind its pointer it is to,
 *    and where its pointer points. Accesses that are alike in all of it are one class, with a set of sites.
 * 2. Accesses through a pointer that may point outside may be to any byte of all that was given to code outside (static/points.h, 5).
 *    They race with each other, and with all accesses of such an object, if their manners allow it; no object is looked at for that.
 * 3. All others are brought together object by object; objects with the same accesses are looked at once.
 */
#include "static/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

/* ---- what is shared ---- */

struct objects {
    rf_object *work;
    size_t count, capacity;
};

static void share(const struct rf_program_ir *program, struct rf_set *shared, struct objects *found, rf_object object)
{
    rf_object whole = rf_points_whole(program->points, object);
    if (!rf_set_add(shared, whole))
        return;
    found->work = rf_reserve(found->work, &found->capacity, found->count + 1, sizeof *found->work);
    found->work[found->count++] = whole;
}

/* What two threads can reach: variables, what is outside, what a thread is given; and all that these point to. */
void rf_static_shared(const struct rf_program_ir *program, struct rf_set *shared)
{
    const struct rf_points *points = program->points;
    struct objects found = { NULL, 0, 0 };
    uint32_t objects = rf_points_objects(points);
    for (rf_object object = 1; object < objects; object++)
        if (rf_points_whole(points, object) == object &&
            (program->kinds[object] == RF_O_GLOBAL || program->kinds[object] == RF_O_OUTSIDE))
            share(program, shared, &found, object);
    RF_SET_EACH(rf_points_of(points, rf_points_kept(points, program->outside)), object)
    share(program, shared, &found, object);
    for (size_t i = 0; i < program->given_count; i++)
        RF_SET_EACH(rf_points_of(points, program->given[i]), object)
    share(program, shared, &found, object);
    while (found.count) {
        rf_object object = rf_points_anywhere(points, found.work[--found.count]);
        RF_SET_EACH(rf_points_of(points, rf_points_held(points, object)), next)
        share(program, shared, &found, next);
    }
    free(found.work);
}

/* ---- manners ---- */

struct manner {
    uint32_t access; /* the first one of it */
    bool writes, atomic;
    struct rf_set outside, given; /* rows of accesses through a pointer to outside; of others, of what was given to it */
};

struct class
{
    uint32_t set, manner;
    uint64_t begin, end;
    struct rf_set rows;
};

/* A class's accesses of an object, and to which of its bytes. */
struct member {
    uint64_t class, begin, end; /* nothing between them: they are compared as memory */
};

struct group {
    struct member *members;
    size_t count, capacity;
};

struct finder {
    const struct rf_program_ir *program;
    const struct rf_threads *threads;
    struct rf_static_pairs *pairs;
    struct rf_set shared, given; /* whole objects */
    struct manner *manners;
    size_t manner_count, manner_capacity;
    struct class *classes;
    size_t class_count, class_capacity;
    const struct rf_set **sets; /* each once */
    size_t set_count, set_capacity;
    uint32_t *class_table, *set_table; /* one more than the number; 0: free */
    size_t class_slots, set_slots;
    struct group *groups; /* by object */
    uint32_t *row_of;     /* by site; UINT32_MAX: none */
};

static uint32_t manner_of(struct finder *finder, uint32_t access)
{
    const struct rf_threads *threads = finder->threads;
    const struct rf_access *at = &finder->program->accesses[access];
    for (uint32_t i = 0; i < finder->manner_count; i++) {
        const struct manner *manner = &finder->manners[i];
        if (manner->writes == at->writes && manner->atomic == at->atomic &&
            threads->in[manner->access] == threads->in[access] &&
            threads->main_beside[manner->access] == threads->main_beside[access])
            return i;
    }
    finder->manners =
        rf_reserve(finder->manners, &finder->manner_capacity, finder->manner_count + 1, sizeof *finder->manners);
    finder->manners[finder->manner_count] = (struct manner){ .access = access, .writes = at->writes, .atomic = at->atomic };
    return (uint32_t)finder->manner_count++;
}

static bool may_race(const struct finder *finder, uint32_t one, uint32_t other)
{
    const struct manner *a = &finder->manners[one], *b = &finder->manners[other];
    return (a->writes || b->writes) && !(a->atomic && b->atomic) && rf_threads_beside(finder->threads, a->access, b->access);
}

/* ---- classes ---- */

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_set(const struct rf_set *set)
{
    uint64_t hash = set->count;
    for (uint32_t i = 0; i < set->count; i++)
        hash = mix(mix(hash, set->words[i].index), set->words[i].bits);
    return hash;
}

static bool same_set(const struct rf_set *one, const struct rf_set *other)
{
    bool same = one->count == other->count;
    for (uint32_t i = 0; i < one->count && same; i++)
        same = one->words[i].index == other->words[i].index && one->words[i].bits == other->words[i].bits;
    return same;
}

static uint64_t hash_class(const struct class *class)
{
    return mix(mix(mix(class->set, class->manner), class->begin), class->end);
}

static uint32_t *set_slot(const struct finder *finder, const struct rf_set *set)
{
    size_t at = hash_set(set) & (finder->set_slots - 1);
    while (finder->set_table[at] && !same_set(finder->sets[finder->set_table[at] - 1], set))
        at = (at + 1) & (finder->set_slots - 1);
    return &finder->set_table[at];
}

static uint32_t *class_slot(const struct finder *finder, const struct class *class)
{
    size_t at = hash_class(class) & (finder->class_slots - 1);
    for (; finder->class_table[at]; at = (at + 1) & (finder->class_slots - 1)) {
        const struct class *there = &finder->classes[finder->class_table[at] - 1];
        if (there->set == class->set && there->manner == class->manner && there->begin == class->begin &&
            there->end == class->end)
            break;
    }
    return &finder->class_table[at];
}

/* Where it points, other than outside: whole objects that are shared, and of what was given to code outside nothing, if it points there
 * anyway. */
static bool is_meant(const struct finder *finder, rf_object object, bool outside)
{
    rf_object whole = rf_points_whole(finder->program->points, object);
    enum rf_object_kind kind = finder->program->kinds[whole];
    return kind != RF_O_FUNCTION && kind != RF_O_OUTSIDE && rf_set_has(&finder->shared, whole) &&
           !(outside && rf_set_has(&finder->given, whole));
}

/* A set that no access had before: where its classes go is the same for all of them, but for the bytes. */
static uint32_t set_number(struct finder *finder, const struct rf_set *set)
{
    uint32_t *slot = set_slot(finder, set);
    if (!*slot) {
        finder->sets = rf_reserve(finder->sets, &finder->set_capacity, finder->set_count + 1, sizeof *finder->sets);
        finder->sets[finder->set_count++] = set;
        *slot = (uint32_t)finder->set_count;
    }
    return *slot - 1;
}

static void add_member(struct finder *finder, rf_object object, uint32_t class)
{
    const struct rf_points *points = finder->program->points;
    struct group *group = &finder->groups[rf_points_whole(points, object)];
    struct member member = { class, finder->classes[class].begin, finder->classes[class].end };
    uint32_t distance = rf_points_distance(points, object);
    if (distance == RF_ANYWHERE) {
        member.begin = 0;
        member.end = UINT64_MAX;
    } else {
        member.begin += distance;
        member.end = member.end == UINT64_MAX ? UINT64_MAX : member.end + distance;
    }
    group->members = rf_reserve(group->members, &group->capacity, group->count + 1, sizeof *group->members);
    group->members[group->count++] = member;
}

static uint32_t class_of(struct finder *finder, const struct class *like)
{
    uint32_t *slot = class_slot(finder, like);
    if (*slot)
        return *slot - 1;
    const struct rf_set *set = finder->sets[like->set];
    bool outside = rf_set_has(set, finder->program->outside);
    uint32_t number = (uint32_t)finder->class_count;
    finder->classes = rf_reserve(finder->classes, &finder->class_capacity, finder->class_count + 1, sizeof *finder->classes);
    finder->classes[finder->class_count++] = *like;
    *slot = number + 1;
    RF_SET_EACH(set, object)
    if (is_meant(finder, object, outside))
        add_member(finder, object, number);
    return number;
}

/* Is it in any pair, as far as its pointer goes? */
static bool is_shared(const struct finder *finder, const struct rf_set *set)
{
    RF_SET_EACH(set, object)
    if (rf_program_kind(finder->program, object) == RF_O_OUTSIDE || is_meant(finder, object, false))
        return true;
    return false;
}

static size_t slots_for(size_t count)
{
    size_t slots = 1024;
    while (slots < 2 * (count + 1))
        slots *= 2;
    return slots;
}

static bool is_beside(const struct rf_threads *threads, uint32_t access)
{
    return threads->in[access] || threads->main_beside[access];
}

/* Which sites have a row. */
static void find_rows(struct finder *finder)
{
    const struct rf_program_ir *program = finder->program;
    struct rf_static_pairs *pairs = finder->pairs;
    for (uint32_t i = 0; i < program->access_count; i++)
        if (is_beside(finder->threads, i) && is_shared(finder, rf_points_of(program->points, program->accesses[i].pointer)))
            finder->row_of[program->accesses[i].site] = 0;
    for (uint32_t i = 0; i < program->site_count; i++)
        if (finder->row_of[i] != UINT32_MAX) {
            finder->row_of[i] = pairs->rows;
            pairs->sites[pairs->rows++] = i;
        }
    pairs->words = pairs->rows / 64 + 1;
    pairs->bits = rf_zeroed((size_t)pairs->rows * pairs->words + 1, sizeof *pairs->bits);
}

static void classify(struct finder *finder)
{
    const struct rf_program_ir *program = finder->program;
    for (uint32_t i = 0; i < program->access_count; i++) {
        const struct rf_access *access = &program->accesses[i];
        uint32_t row = finder->row_of[access->site];
        const struct rf_set *set = rf_points_of(program->points, access->pointer);
        if (!is_beside(finder->threads, i) || row == UINT32_MAX || !is_shared(finder, set))
            continue;
        struct class like = { set_number(finder, set), manner_of(finder, i), access->begin, access->end, { NULL, 0, 0 } };
        uint32_t class = class_of(finder, &like);
        struct manner *manner = &finder->manners[like.manner];
        rf_set_add(&finder->classes[class].rows, row);
        bool given = false;
        RF_SET_EACH(set, object)
        given |= rf_set_has(&finder->given, rf_points_whole(program->points, object));
        if (rf_set_has(set, program->outside))
            rf_set_add(&manner->outside, row);
        else if (given)
            rf_set_add(&manner->given, row);
    }
}

/* ---- pairing up ---- */

static void add_set(struct finder *finder, const struct rf_set *rows, const struct rf_set *with)
{
    RF_SET_EACH(rows, row)
    {
        uint64_t *bits = finder->pairs->bits + row * finder->pairs->words;
        for (uint32_t i = 0; i < with->count; i++)
            bits[with->words[i].index] |= with->words[i].bits;
    }
}

/* Invariant 2. */
static void pair_outside(struct finder *finder)
{
    uint32_t count = (uint32_t)finder->manner_count;
    for (uint32_t i = 0; i < count; i++) {
        struct rf_set all = { NULL, 0, 0 }, known = { NULL, 0, 0 }; /* through pointers to outside, and to what was given */
        for (uint32_t j = 0; j < count; j++)
            if (may_race(finder, i, j)) {
                rf_set_add_all(&all, &finder->manners[j].outside);
                rf_set_add_all(&known, &finder->manners[j].given);
            }
        add_set(finder, &finder->manners[i].outside, &all);
        add_set(finder, &finder->manners[i].outside, &known);
        add_set(finder, &finder->manners[i].given, &all);
        free(all.words);
        free(known.words);
    }
}

/* Invariant 3. */
static int by_members(const void *a, const void *b)
{
    const struct group *one = a, *other = b;
    if (one->count != other->count)
        return one->count < other->count ? -1 : 1;
    return one->count ? memcmp(one->members, other->members, one->count * sizeof *one->members) : 0;
}

static const struct finder *sorting;

static int by_bytes(const void *a, const void *b)
{
    const struct member *one = a, *other = b;
    uint32_t x = sorting->classes[one->class].manner, y = sorting->classes[other->class].manner;
    if (one->begin != other->begin)
        return one->begin < other->begin ? -1 : 1;
    if (one->end != other->end)
        return one->end < other->end ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void pair_up(struct finder *finder, struct group *group)
{
    struct part { /* of the same manner, to the same bytes */
        uint64_t begin, end;
        uint32_t manner;
        struct rf_set rows;
    } *parts = rf_zeroed(group->count, sizeof *parts);
    size_t count = 0;
    sorting = finder;
    qsort(group->members, group->count, sizeof *group->members, by_bytes);
    for (size_t i = 0; i < group->count; i++) {
        const struct member *member = &group->members[i];
        if (!i || by_bytes(member, member - 1) != 0)
            parts[count++] =
                (struct part){ member->begin, member->end, finder->classes[member->class].manner, { NULL, 0, 0 } };
        rf_set_add_all(&parts[count - 1].rows, &finder->classes[member->class].rows);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = i; j < count; j++)
            if (parts[i].begin < parts[j].end && parts[j].begin < parts[i].end &&
                may_race(finder, parts[i].manner, parts[j].manner)) {
                add_set(finder, &parts[i].rows, &parts[j].rows);
                if (i != j)
                    add_set(finder, &parts[j].rows, &parts[i].rows);
            }
    for (size_t i = 0; i < count; i++)
        free(parts[i].rows.words);
    free(parts);
}

/* ---- groups of rows ---- */

static void group_rows(struct rf_static_pairs *pairs)
{
    size_t slots = slots_for(pairs->rows);
    uint32_t *table = rf_zeroed(slots, sizeof *table); /* one more than a group's first row */
    pairs->group = rf_zeroed(pairs->rows + 1, sizeof *pairs->group);
    for (uint32_t row = 0; row < pairs->rows; row++) {
        const uint64_t *bits = pairs->bits + row * pairs->words;
        uint64_t hash = 0;
        for (size_t i = 0; i < pairs->words; i++)
            hash = mix(hash, bits[i]);
        size_t at = hash & (slots - 1);
        while (table[at] && memcmp(pairs->bits + (table[at] - 1) * pairs->words, bits, pairs->words * sizeof *bits) != 0)
            at = (at + 1) & (slots - 1);
        if (!table[at]) {
            table[at] = row + 1;
            pairs->group[row] = pairs->groups++;
        } else {
            pairs->group[row] = pairs->group[table[at] - 1];
        }
        for (size_t i = row / 64; i < pairs->words; i++) {
            uint64_t word = i == row / 64 ? bits[i] >> row % 64 : bits[i];
            pairs->count += (uint64_t)__builtin_popcountll(word);
        }
    }
    free(table);
}

static void forget(struct finder *finder, uint32_t objects)
{
    for (uint32_t i = 0; i < objects; i++)
        free(finder->groups[i].members);
    for (size_t i = 0; i < finder->class_count; i++)
        free(finder->classes[i].rows.words);
    for (size_t i = 0; i < finder->manner_count; i++) {
        free(finder->manners[i].outside.words);
        free(finder->manners[i].given.words);
    }
    free(finder->groups);
    free(finder->classes);
    free(finder->manners);
    free(finder->sets);
    free(finder->class_table);
    free(finder->set_table);
    free(finder->row_of);
    free(finder->shared.words);
    free(finder->given.words);
}

void rf_static_pairs_find(struct rf_static_pairs *pairs, const struct rf_program_ir *program,
                          const struct rf_threads *threads)
{
    struct finder finder = { .program = program, .threads = threads, .pairs = pairs };
    const struct rf_points *points = program->points;
    uint32_t objects = rf_points_objects(points);
    memset(pairs, 0, sizeof *pairs);
    finder.groups = rf_zeroed(objects, sizeof *finder.groups);
    finder.class_slots = finder.set_slots = slots_for(program->access_count);
    finder.class_table = rf_zeroed(finder.class_slots, sizeof *finder.class_table);
    finder.set_table = rf_zeroed(finder.set_slots, sizeof *finder.set_table);
    finder.row_of = rf_zeroed(program->site_count + 1, sizeof *finder.row_of);
    memset(finder.row_of, 0xff, program->site_count * sizeof *finder.row_of);
    pairs->sites = rf_zeroed(program->site_count + 1, sizeof *pairs->sites);
    rf_static_shared(program, &finder.shared);
    RF_SET_EACH(rf_points_of(points, rf_points_kept(points, program->outside)), object)
    rf_set_add(&finder.given, rf_points_whole(points, object));
    find_rows(&finder);
    classify(&finder);
    pair_outside(&finder);
    for (rf_object object = 1; object < objects; object++) {
        if (rf_points_whole(points, object) != object)
            continue;
        pairs->objects += program->kinds[object] != RF_O_FUNCTION;
        pairs->shared += rf_set_has(&finder.shared, object) && program->kinds[object] != RF_O_FUNCTION;
    }
    qsort(finder.groups, objects, sizeof *finder.groups, by_members);
    for (uint32_t i = objects;
         i-- > 0;) /* sorting a group's members puts them in another order: only those that are behind us */
        if (!i || by_members(&finder.groups[i], &finder.groups[i - 1]) != 0)
            pair_up(&finder, &finder.groups[i]);
    group_rows(pairs);
    forget(&finder, objects);
}
