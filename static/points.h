/* Points-to analysis by inclusion (Andersen): which objects a value may point to, whatever the order of execution.
 *
 * 1. A node is a set of objects that only grows. An object is a variable, a function, or everything that one instruction allocates.
 * 2. Edges say what includes what: to >= from; to >= content of all that `pointer` points to; content of all that `pointer` points to
 *    >= from; to >= all that `from` points to, at any place inside.
 * 3. An object of memory has places: one for each distance from its beginning at which a pointer is known to point, and one that stands
 *    for anywhere inside. A place is an object, too, so that sets can hold it; rf_points_whole() tells of what. A place on a multiple of
 *    eight bytes has content of its own, which is what was stored there or anywhere; what is loaded from anywhere, or from a place
 *    between, may be the content of any of them. So fields are told apart by their distance alone, and any cast, union or pointer
 *    arithmetic inside an object is covered. An object with too many places has no more of them: its other ones are anywhere.
 *    One without places (a function, what is outside) is always meant as a whole.
 * 4. Who waits for a node is told of every object that comes into it, at least once.
 * 5. What code that is not seen knows, and hands out, is one object, outside: a pointer to it may point anywhere in all that was given to
 *    such code, which is what its `kept` node has. So nobody's set need have all of that in it; who wants to know looks there.
 * 6. A set that has anywhere in an object need not have its other places; nor, if it has outside, what was given to it.
 */
#ifndef RF_STATIC_POINTS_H
#define RF_STATIC_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t rf_node;   /* 0 is none */
typedef uint32_t rf_object; /* 0 is none */

/* A sorted array of words of 64 bits. */
struct rf_set {
    struct rf_set_word {
        uint32_t index;
        uint64_t bits;
    } * words;
    uint32_t count, capacity;
};

bool rf_set_add(struct rf_set *set, uint32_t member);
bool rf_set_add_all(struct rf_set *set, const struct rf_set *more);
bool rf_set_has(const struct rf_set *set, uint32_t member);
/* The smallest member from `from` on; UINT32_MAX: none. */
uint32_t rf_set_next(const struct rf_set *set, uint32_t from);
#define RF_SET_EACH(set, member)                                                                                            \
    for (uint32_t member = rf_set_next(set, 0); member != UINT32_MAX; member = rf_set_next(set, member + 1))

struct rf_points;
typedef void rf_points_heard(void *context, rf_object object);

struct rf_points *rf_points_new(void);
rf_node rf_points_node(struct rf_points *points);
rf_object rf_points_object(struct rf_points *points);
rf_object rf_points_outside(struct rf_points *points); /* invariant 5; its `held` points to it and to nothing else */
rf_object rf_points_memory(struct rf_points *points);  /* an object with places: its beginning */
rf_object rf_points_whole(const struct rf_points *points, rf_object object); /* that it is a place of; itself otherwise */
#define RF_ANYWHERE UINT32_MAX
uint32_t rf_points_distance(const struct rf_points *points, rf_object object); /* from the beginning, or RF_ANYWHERE */
rf_object rf_points_place(struct rf_points *points, rf_object object,
                          uint32_t distance); /* so much behind `object`, itself a place */
/* It was given to code outside, which has all that is in it and may store there what it likes. */
void rf_points_give(struct rf_points *points, rf_object object);
rf_object rf_points_anywhere(const struct rf_points *points, rf_object object);
/* What is loaded there; what goes into it was stored there. Of an object without places, other than outside, they are one. */
rf_node rf_points_held(const struct rf_points *points, rf_object object);
rf_node rf_points_kept(const struct rf_points *points, rf_object object);

void rf_points_add(struct rf_points *points, rf_node node, rf_object object);
void rf_points_copy(struct rf_points *points, rf_node to, rf_node from);
void rf_points_shift(struct rf_points *points, rf_node to, rf_node from); /* from, moved by some distance */
void rf_points_move(struct rf_points *points, rf_node to, rf_node from,
                    uint32_t distance); /* from, moved by this distance */
void rf_points_load(struct rf_points *points, rf_node to, rf_node pointer);
void rf_points_store(struct rf_points *points, rf_node pointer, rf_node from);
void rf_points_listen(struct rf_points *points, rf_node node, rf_points_heard *heard, void *context);

/* Until nothing grows any more. progress may be NULL. */
void rf_points_solve(struct rf_points *points, void (*progress)(uint64_t done, uint64_t waiting));
const struct rf_set *rf_points_of(const struct rf_points *points, rf_node node);
uint32_t rf_points_nodes(const struct rf_points *points);
uint32_t rf_points_objects(const struct rf_points *points);

#endif
