/* See static/facts.h. */
#include "static/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"

/* Of a site: what reads there access, and writes. Kinds of the heap are the sites that make them, above the letters. */
enum { ANY, STACK, FIRST_SITE };

struct facts {
    struct rf_set reads, writes;
    bool read, written, publishes, calls;
};

struct origins {
    uint32_t *first, *next; /* by object: an origin and one more; by origin: the next one of its object. One more, 0: none */
};

static struct origins origins_of(const struct rf_program_ir *program)
{
    struct origins origins = { rf_zeroed(rf_points_objects(program->points), sizeof *origins.first),
                               rf_zeroed(program->origin_count, sizeof *origins.next) };
    for (uint32_t i = 0; i < program->origin_count; i++) {
        origins.next[i] = origins.first[program->origins[i].object];
        origins.first[program->origins[i].object] = i + 1;
    }
    return origins;
}

static void add_heap(const struct rf_program_ir *program, const struct origins *origins, rf_object object,
                     struct rf_set *kinds)
{
    uint32_t at = origins->first[object];
    if (!at)
        rf_set_add(kinds, ANY);
    for (; at; at = origins->next[at - 1]) {
        uint32_t site = program->origins[at - 1].site;
        rf_set_add(kinds, site == UINT32_MAX ? ANY : FIRST_SITE + site);
    }
}

static void add_kinds(const struct rf_program_ir *program, const struct origins *origins, rf_node pointer,
                      struct rf_set *kinds)
{
    const struct rf_set *objects = rf_points_of(program->points, pointer);
    if (rf_set_next(objects, 0) == UINT32_MAX) /* it points to nothing that is known: perhaps that is our mistake */
        rf_set_add(kinds, ANY);
    RF_SET_EACH(objects, object)
    switch (rf_program_kind(program, object)) {
    case RF_O_CONSTANT:
    case RF_O_FUNCTION:
        break;
    case RF_O_LOCAL:
    case RF_O_VARARGS:
        rf_set_add(kinds, STACK);
        break;
    case RF_O_HEAP:
        add_heap(program, origins, rf_points_whole(program->points, object), kinds);
        break;
    default:
        rf_set_add(kinds, ANY);
    }
}

/* May it store, where others can see it, an address that they do not know? */
static bool may_publish(const struct rf_program_ir *program, const struct rf_set *shared, const struct rf_access *access)
{
    bool seen = false, address = LLVMIsACallInst(access->instruction) || LLVMIsAInvokeInst(access->instruction);
    RF_SET_EACH(rf_points_of(program->points, access->pointer), object)
    seen |= rf_set_has(shared, rf_points_whole(program->points, object));
    if (access->stored)
        RF_SET_EACH(rf_points_of(program->points, access->stored), object)
    switch (rf_program_kind(program, object)) {
    case RF_O_GLOBAL:
    case RF_O_CONSTANT:
    case RF_O_FUNCTION:
        break;
    default: /* and what is a thread's own: it lies beside its stack, and escapes with it */
        address = true;
    }
    return (seen || rf_set_next(rf_points_of(program->points, access->pointer), 0) == UINT32_MAX) && address;
}

static void print_place(FILE *out, const struct rf_site_line *site)
{
    fprintf(out, "%s:%u", site->file, site->line);
}

static void print_kinds(FILE *out, const char *word, const struct rf_site_line *site, const struct rf_set *kinds)
{
    const char *between = " ";
    fprintf(out, "%s ", word);
    print_place(out, site);
    RF_SET_EACH(kinds, kind)
    {
        kind == ANY     ? fprintf(out, "%sg", between)
        : kind == STACK ? fprintf(out, "%ss", between)
                        : fprintf(out, "%s%u", between, kind - FIRST_SITE);
        between = ",";
    }
    fputc('\n', out);
}

bool rf_static_facts_write(const struct rf_program_ir *program, const char *path)
{
    struct rf_set shared = { NULL, 0, 0 };
    struct facts *facts = rf_zeroed(program->site_count, sizeof *facts);
    struct origins origins = origins_of(program);
    FILE *out = fopen(path, "we");
    if (!out)
        return false;
    rf_static_shared(program, &shared);
    for (size_t i = 0; i < program->access_count; i++) {
        const struct rf_access *access = &program->accesses[i];
        struct facts *at = &facts[access->site];
        at->read |= access->reads;
        at->written |= access->writes;
        if (access->reads)
            add_kinds(program, &origins, access->pointer, &at->reads);
        if (access->writes)
            add_kinds(program, &origins, access->pointer, &at->writes);
        at->calls |= !access->silent && (LLVMIsACallInst(access->instruction) || LLVMIsAInvokeInst(access->instruction));
        at->publishes |= access->writes && may_publish(program, &shared, access);
    }
    for (size_t i = 0; i < program->origin_count; i++) {
        const struct rf_origin *origin = &program->origins[i];
        if (origin->site == UINT32_MAX || strchr(program->sites[origin->site].file, ' '))
            continue;
        origin->object ? fprintf(out, "made %u ", origin->site) : fprintf(out, "made - ");
        print_place(out, &program->sites[origin->site]);
        fputc('\n', out);
    }
    for (size_t i = 0; i < program->site_count; i++) {
        if (strchr(program->sites[i].file, ' '))
            continue;
        if (facts[i].read)
            print_kinds(out, "read", &program->sites[i], &facts[i].reads);
        if (facts[i].written)
            print_kinds(out, facts[i].publishes ? "publish" : "write", &program->sites[i], &facts[i].writes);
        if (facts[i].calls)
            fprintf(out, "call %s:%u\n", program->sites[i].file, program->sites[i].line);
        free(facts[i].reads.words);
        free(facts[i].writes.words);
    }
    free(facts);
    free(origins.first);
    free(origins.next);
    free(shared.words);
    return fclose(out) == 0;
}
