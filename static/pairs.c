/* See static/pairs.h. */
#include "static/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

/* What two threads can reach: variables, what is outside, what a thread is given; and all that these point to. */
void rf_static_shared(const struct rf_program_ir *program, struct rf_set *shared)
{
    rf_object *work = NULL;
    size_t count = 0, capacity = 0;
    uint32_t objects = rf_points_objects(program->points);
    for (rf_object object = 1; object < objects; object++)
        if (rf_points_whole(program->points, object) == object &&
            (program->kinds[object] == RF_O_GLOBAL || program->kinds[object] == RF_O_OUTSIDE))
            if (rf_set_add(shared, object)) {
                work = rf_reserve(work, &capacity, count + 1, sizeof *work);
                work[count++] = object;
            }
    for (size_t i = 0; i < program->given_count; i++)
        RF_SET_EACH(rf_points_of(program->points, program->given[i]), object)
    if (rf_set_add(shared, rf_points_whole(program->points, object))) {
        work = rf_reserve(work, &capacity, count + 1, sizeof *work);
        work[count++] = rf_points_whole(program->points, object);
    }
    while (count) {
        rf_object object = work[--count];
        RF_SET_EACH(
            rf_points_of(program->points, rf_points_held(program->points, rf_points_anywhere(program->points, object))),
            next)
        if (rf_set_add(shared, rf_points_whole(program->points, next))) {
            work = rf_reserve(work, &capacity, count + 1, sizeof *work);
            work[count++] = rf_points_whole(program->points, next);
        }
    }
    free(work);
}

/* The accesses of each object, and to which of its bytes. Those that differ in nothing that matters are one. */
struct group {
    struct member {
        uint32_t access;
        uint64_t begin, end;
    } * members;
    size_t count, capacity;
};

static bool alike(const struct rf_program_ir *program, const struct rf_threads *threads, const struct member *one,
                  const struct member *other)
{
    const struct rf_access *a = &program->accesses[one->access], *b = &program->accesses[other->access];
    return a->site == b->site && a->writes == b->writes && a->atomic == b->atomic && one->begin == other->begin &&
           one->end == other->end && threads->in[one->access] == threads->in[other->access] &&
           threads->main_beside[one->access] == threads->main_beside[other->access];
}

static void add_pair(struct rf_static_pairs *pairs, uint32_t one, uint32_t other)
{
    pairs->pairs = rf_reserve(pairs->pairs, &pairs->capacity, pairs->count + 1, sizeof *pairs->pairs);
    pairs->pairs[pairs->count++] = one < other ? (uint64_t)one << 32 | other : (uint64_t)other << 32 | one;
}

static int by_number(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

static void keep_each_once(struct rf_static_pairs *pairs)
{
    size_t kept = 0;
    if (pairs->count)
        qsort(pairs->pairs, pairs->count, sizeof *pairs->pairs, by_number);
    for (size_t i = 0; i < pairs->count; i++)
        if (!kept || pairs->pairs[i] != pairs->pairs[kept - 1])
            pairs->pairs[kept++] = pairs->pairs[i];
    pairs->count = kept;
}

static void pair_up(struct rf_static_pairs *pairs, const struct rf_program_ir *program, const struct rf_threads *threads,
                    const struct group *group)
{
    for (size_t i = 0; i < group->count; i++)
        for (size_t j = i; j < group->count; j++) {
            const struct member *one = &group->members[i], *other = &group->members[j];
            const struct rf_access *a = &program->accesses[one->access], *b = &program->accesses[other->access];
            if ((a->writes || b->writes) && !(a->atomic && b->atomic) && one->begin < other->end &&
                other->begin < one->end && rf_threads_beside(threads, one->access, other->access))
                add_pair(pairs, a->site, b->site);
        }
    if (pairs->count > (size_t)1 << 22) /* many objects have the same ones */
        keep_each_once(pairs);
}

/* Many objects are accessed by the same, in the same way: once is enough. */
static int by_members(const void *a, const void *b)
{
    const struct group *one = a, *other = b;
    if (one->count != other->count)
        return one->count < other->count ? -1 : 1;
    for (size_t i = 0; i < one->count; i++) {
        const struct member *x = &one->members[i], *y = &other->members[i];
        if (x->access != y->access)
            return x->access < y->access ? -1 : 1;
        if (x->begin != y->begin || x->end != y->end)
            return x->begin < y->begin || (x->begin == y->begin && x->end < y->end) ? -1 : 1;
    }
    return 0;
}

void rf_static_pairs_find(struct rf_static_pairs *pairs, const struct rf_program_ir *program,
                          const struct rf_threads *threads)
{
    struct rf_set shared = { NULL, 0, 0 };
    uint32_t objects = rf_points_objects(program->points);
    struct group *groups = rf_zeroed(objects, sizeof *groups);
    memset(pairs, 0, sizeof *pairs);
    rf_static_shared(program, &shared);
    for (uint32_t i = 0; i < program->access_count; i++) {
        if (!threads->in[i] && !threads->main_beside[i])
            continue;
        RF_SET_EACH(rf_points_of(program->points, program->accesses[i].pointer), object)
        {
            rf_object whole = rf_points_whole(program->points, object);
            struct group *group = &groups[whole];
            struct member member = { i, program->accesses[i].begin, program->accesses[i].end };
            uint32_t distance = rf_points_distance(program->points, object);
            if (distance == RF_ANYWHERE) {
                member.begin = 0;
                member.end = UINT64_MAX;
            } else {
                member.begin += distance;
                member.end = member.end == UINT64_MAX ? UINT64_MAX : member.end + distance;
            }
            bool known = !rf_set_has(&shared, whole) || program->kinds[whole] == RF_O_FUNCTION;
            for (size_t j = group->count, looked = 0; !known && j-- > 0 && looked < 32; looked++)
                known = alike(program, threads, &group->members[j], &member);
            if (known)
                continue;
            group->members = rf_reserve(group->members, &group->capacity, group->count + 1, sizeof *group->members);
            group->members[group->count++] = member;
        }
    }
    for (rf_object object = 1; object < objects; object++) {
        if (rf_points_whole(program->points, object) != object)
            continue;
        pairs->objects += program->kinds[object] != RF_O_FUNCTION;
        pairs->shared += rf_set_has(&shared, object) && program->kinds[object] != RF_O_FUNCTION;
    }
    qsort(groups, objects, sizeof *groups, by_members);
    for (uint32_t i = 0; i < objects; i++)
        if (!i || by_members(&groups[i], &groups[i - 1]) != 0)
            pair_up(pairs, program, threads, &groups[i]);
    for (uint32_t i = 0; i < objects; i++)
        free(groups[i].members);
    keep_each_once(pairs);
    free(groups);
    free(shared.words);
}
