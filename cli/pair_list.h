/* Lists of pairs of sites, as `redflag static` writes them and `redflag caper` and `redflag store import` read them. A text, by lines; '#'
 * begins a comment:
 *
 *     SITE1 SITE2 [PRIORITY]       a pair
 *     %1 = SITE SITE ...           a group of sites
 *     %1 %1,%2,%7 [PRIORITY]       each site of the group before the blank with each of those behind it: as many pairs; a group with
 *                                  itself is each of its sites with each, and with itself, once
 *
 * 1. A name is kept once, however many pairs it is in: a large program has a hundred million pairs of a few thousand names.
 * 2. A group is there before it is used.
 */
#ifndef RF_CLI_PAIR_LIST_H
#define RF_CLI_PAIR_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rf_pair_list {
    char **names;
    size_t name_count, name_capacity;
    uint32_t *table; /* of names, one more than the number; 0: free */
    size_t slots;
    struct rf_pair_group {
        unsigned long label;
        uint32_t *names;
        size_t count, capacity;
    } * groups; /* by label */
    size_t group_count, group_capacity;
    struct rf_pair_product {
        uint32_t first, second; /* names; or with RF_PAIR_GROUP, groups */
        long long priority;
    } * products;
    size_t product_count, product_capacity;
};

#define RF_PAIR_GROUP (UINT32_C(1) << 31)

void rf_pair_list_add(struct rf_pair_list *list, const char *first, const char *second, long long priority);
/* A line of the text, which is changed. False: it is none, and `error` says why. */
bool rf_pair_list_line(struct rf_pair_list *list, char *line, char error[160]);
void rf_pair_list_free(struct rf_pair_list *list);

/* The pairs both of whose names are wanted (by name; NULL: all), and how many there are. `each` may be NULL, and ends it by false. */
typedef bool rf_pair_list_each(void *context, const char *first, const char *second, long long priority);
uint64_t rf_pair_list_pairs(const struct rf_pair_list *list, const bool *wanted, rf_pair_list_each *each, void *context);

#endif
