/* See static/print.h. */
#include "static/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

bool rf_static_form_named(const char *name, enum rf_static_form *form)
{
    static const char *const names[] = {
        [RF_STATIC_LINES] = "text", [RF_STATIC_JSON] = "json", [RF_STATIC_GROUPS] = "groups"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *form = (enum rf_static_form)i;
            return true;
        }
    return false;
}

static void print_pairs(FILE *out, bool json, const struct rf_program_ir *program, const struct rf_static_pairs *pairs)
{
    const char *between = "";
    for (uint32_t i = 0; i < pairs->rows; i++)
        for (uint32_t j = i; j < pairs->rows; j++) {
            if (j % 64 == 0 && !pairs->bits[i * pairs->words + j / 64]) {
                j += 63;
                continue;
            }
            if (!rf_static_pair(pairs, i, j))
                continue;
            const struct rf_site_line *one = &program->sites[pairs->sites[i]], *other = &program->sites[pairs->sites[j]];
            if (json)
                fprintf(out, "%s\n[\"%s:%u\", \"%s:%u\"]", between, one->file, one->line, other->file, other->line);
            else
                fprintf(out, "%s:%u %s:%u\n", one->file, one->line, other->file, other->line);
            between = ",";
        }
}

/* Groups have the numbers from 1 on. One that is in no pair is left out. */
static void print_groups(FILE *out, const struct rf_program_ir *program, const struct rf_static_pairs *pairs)
{
    uint32_t *first = rf_zeroed(pairs->groups, sizeof *first); /* rows */
    uint32_t *count = rf_zeroed(pairs->groups + 1, sizeof *count), *order = rf_zeroed(pairs->rows, sizeof *order);
    for (uint32_t row = pairs->rows; row-- > 0;) {
        first[pairs->group[row]] = row;
        count[pairs->group[row] + 1]++;
    }
    for (uint32_t group = 0; group < pairs->groups; group++)
        count[group + 1] += count[group];
    uint32_t *at = rf_zeroed(pairs->groups, sizeof *at);
    for (uint32_t row = 0; row < pairs->rows; row++) { /* the rows of a group beside each other */
        uint32_t group = pairs->group[row];
        order[count[group] + at[group]++] = row;
    }
    for (uint32_t group = 0; group < pairs->groups; group++) {
        bool any = false;
        for (size_t i = 0; i < pairs->words && !any; i++)
            any = pairs->bits[first[group] * pairs->words + i];
        if (!any)
            continue;
        fprintf(out, "%%%u =", group + 1);
        for (uint32_t i = count[group]; i < count[group + 1]; i++)
            fprintf(out, " %s:%u", program->sites[pairs->sites[order[i]]].file, program->sites[pairs->sites[order[i]]].line);
        fputc('\n', out);
    }
    for (uint32_t group = 0; group < pairs->groups; group++) {
        bool any = false;
        for (uint32_t other = group; other < pairs->groups; other++)
            if (rf_static_pair(pairs, first[group], first[other])) {
                any ? fputc(',', out) : fprintf(out, "%%%u ", group + 1);
                fprintf(out, "%%%u", other + 1);
                any = true;
            }
        if (any)
            fputc('\n', out);
    }
    free(first);
    free(count);
    free(order);
    free(at);
}

void rf_static_print(FILE *out, enum rf_static_form form, const struct rf_program_ir *program,
                     const struct rf_static_pairs *pairs)
{
    if (form == RF_STATIC_GROUPS) {
        print_groups(out, program, pairs);
        return;
    }
    if (form == RF_STATIC_JSON)
        fputs("{\"pairs\": [", out);
    print_pairs(out, form == RF_STATIC_JSON, program, pairs);
    if (form == RF_STATIC_JSON)
        fprintf(out, "\n], \"sites\": %zu, \"accesses\": %zu, \"shared_objects\": %" PRIu64 ", \"objects\": %" PRIu64 "}\n",
                program->site_count, program->access_count, pairs->shared, pairs->objects);
}
