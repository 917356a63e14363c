/* See cli/pair_list.h. */
#include "cli/pair_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

/* ---- names ---- */

static uint32_t *slot_of(const struct rf_pair_list *list, const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    size_t at = (hash ^ hash >> 32) & (list->slots - 1);
    while (list->table[at] && strcmp(list->names[list->table[at] - 1], name) != 0)
        at = (at + 1) & (list->slots - 1);
    return &list->table[at];
}

static uint32_t name_of(struct rf_pair_list *list, const char *name)
{
    if (2 * (list->name_count + 1) > list->slots) {
        free(list->table);
        list->slots = list->slots ? 2 * list->slots : 1024;
        list->table = rf_zeroed(list->slots, sizeof *list->table);
        for (uint32_t i = 0; i < list->name_count; i++)
            *slot_of(list, list->names[i]) = i + 1;
    }
    uint32_t *slot = slot_of(list, name);
    if (!*slot) {
        list->names = rf_reserve(list->names, &list->name_capacity, list->name_count + 1, sizeof *list->names);
        list->names[list->name_count++] = rf_check_memory(strdup(name), strlen(name));
        *slot = (uint32_t)list->name_count;
    }
    return *slot - 1;
}

/* ---- lines ---- */

static void add_product(struct rf_pair_list *list, uint32_t first, uint32_t second, long long priority)
{
    list->products = rf_reserve(list->products, &list->product_capacity, list->product_count + 1, sizeof *list->products);
    list->products[list->product_count++] = (struct rf_pair_product){ first, second, priority };
}

void rf_pair_list_add(struct rf_pair_list *list, const char *first, const char *second, long long priority)
{
    uint32_t one = name_of(list, first);
    add_product(list, one, name_of(list, second), priority);
}

/* "%LABEL"; the text goes on behind it. */
static bool label_of(char **text, unsigned long *label)
{
    char *end;
    if (**text != '%' || (*text)[1] < '0' || (*text)[1] > '9')
        return false;
    *label = strtoul(*text + 1, &end, 10);
    *text = end;
    return true;
}

static uint32_t group_of(const struct rf_pair_list *list, unsigned long label)
{
    size_t low = 0, high = list->group_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (list->groups[middle].label < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->group_count && list->groups[low].label == label ? (uint32_t)low : UINT32_MAX;
}

static bool define_group(struct rf_pair_list *list, unsigned long label, char *sites, char error[160])
{
    struct rf_pair_group group = { .label = label };
    if (list->group_count && list->groups[list->group_count - 1].label >= label) {
        snprintf(error, 160, "group %%%lu does not come in order", label);
        return false;
    }
    char *save;
    for (char *site = strtok_r(sites, " \t\r\n", &save); site; site = strtok_r(NULL, " \t\r\n", &save)) {
        group.names = rf_reserve(group.names, &group.capacity, group.count + 1, sizeof *group.names);
        group.names[group.count++] = name_of(list, site);
    }
    list->groups = rf_reserve(list->groups, &list->group_capacity, list->group_count + 1, sizeof *list->groups);
    list->groups[list->group_count++] = group;
    return true;
}

static bool add_groups(struct rf_pair_list *list, char *first, char *second, long long priority, char error[160])
{
    unsigned long label, other;
    bool good = label_of(&first, &label) && !*first;
    for (char *at = second; good; at++) {
        good = label_of(&at, &other) && (!*at || *at == ',');
        uint32_t one = good ? group_of(list, label) : 0, two = good ? group_of(list, other) : 0;
        if (one == UINT32_MAX || two == UINT32_MAX) {
            snprintf(error, 160, "there is no group %%%lu before it", one == UINT32_MAX ? label : other);
            return false;
        }
        if (good)
            add_product(list, one | RF_PAIR_GROUP, two | RF_PAIR_GROUP, priority);
        if (!*at)
            break;
    }
    if (!good)
        snprintf(error, 160, "not '%%GROUP %%GROUP,...'");
    return good;
}

bool rf_pair_list_line(struct rf_pair_list *list, char *line, char error[160])
{
    char *save, *end;
    unsigned long label;
    line[strcspn(line, "#\n")] = 0;
    line += strspn(line, " \t\r");
    char *at = line;
    if (label_of(&at, &label)) {
        at += strspn(at, " \t");
        if (*at == '=')
            return define_group(list, label, at + 1, error);
    }
    char *first = strtok_r(line, " \t\r", &save), *second = first ? strtok_r(NULL, " \t\r", &save) : NULL;
    char *priority = second ? strtok_r(NULL, " \t\r", &save) : NULL;
    if (!first)
        return true;
    long long number = priority ? strtoll(priority, &end, 10) : 0;
    if (!second || (priority && (*end || strtok_r(NULL, " \t\r", &save)))) {
        snprintf(error, 160, "not 'SITE1 SITE2 [PRIORITY]'");
        return false;
    }
    if (first[0] == '%')
        return add_groups(list, first, second, number, error);
    rf_pair_list_add(list, first, second, number);
    return true;
}

void rf_pair_list_free(struct rf_pair_list *list)
{
    for (size_t i = 0; i < list->name_count; i++)
        free(list->names[i]);
    for (size_t i = 0; i < list->group_count; i++)
        free(list->groups[i].names);
    free(list->names);
    free(list->table);
    free(list->groups);
    free(list->products);
    memset(list, 0, sizeof *list);
}

/* ---- pairs ---- */

static const uint32_t *side(const struct rf_pair_list *list, const uint32_t *what, size_t *count)
{
    if (!(*what & RF_PAIR_GROUP)) {
        *count = 1;
        return what;
    }
    const struct rf_pair_group *group = &list->groups[*what & ~RF_PAIR_GROUP];
    *count = group->count;
    return group->names;
}

static uint64_t wanted_of(const uint32_t *names, size_t count, const bool *wanted)
{
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += !wanted || wanted[names[i]];
    return found;
}

uint64_t rf_pair_list_pairs(const struct rf_pair_list *list, const bool *wanted, rf_pair_list_each *each, void *context)
{
    uint64_t all = 0;
    for (size_t p = 0; p < list->product_count; p++) {
        const struct rf_pair_product *product = &list->products[p];
        size_t first_count, second_count;
        const uint32_t *first = side(list, &product->first, &first_count);
        const uint32_t *second = side(list, &product->second, &second_count);
        bool same = product->first == product->second;
        uint64_t some = wanted_of(first, first_count, wanted);
        all += same ? some * (some + 1) / 2 : some ? some * wanted_of(second, second_count, wanted) : 0;
        for (size_t i = 0; each && i < first_count; i++)
            for (size_t j = same ? i : 0; (!wanted || wanted[first[i]]) && j < second_count; j++)
                if ((!wanted || wanted[second[j]]) &&
                    !each(context, list->names[first[i]], list->names[second[j]], product->priority))
                    return all;
    }
    return all;
}
