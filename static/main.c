/* redflag-static: the pairs of sites of a whole program that may race, from its LLVM bitcode. `redflag static` runs it: it is a program of
 * its own, because LLVM's library is large, and whoever needs only the other commands need not have it. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "static/facts.h"

#define WHO "redflag static"

static const char usage[] =
    "usage: redflag static [OPTION...] FILE.bc...\n\n"
    "The pairs of sites that may race, of a whole program: the bitcode of all of its files, which `redflag cc --bitcode` leaves\n"
    "beside the objects. Prints lines 'SITE1 SITE2', a site being FILE:LINE.\n\n"
    "  -o, --output FILE      write the pairs there\n"
    "      --facts FILE       also write there what `redflag caper` needs to look at less: which memory each line may access\n"
    "  -f, --format FORM      text or json\n"
    "  -s, --statistics       also print, on standard error, what was found on the way\n"
    "  -h, --help             this text\n\n"
    "Exit status: 0 done; 2 bad usage, unreadable bitcode, or bitcode without lines (compile with -g).";

static bool failed; /* LLVM has said something that is an error */

static void heard(LLVMDiagnosticInfoRef info, void *context)
{
    (void)context;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    fprintf(stderr, WHO ": %s\n", text);
    LLVMDisposeMessage(text);
    failed = true;
}

static LLVMModuleRef read_module(LLVMContextRef context, const char *path)
{
    LLVMMemoryBufferRef buffer;
    LLVMModuleRef module;
    char *error = NULL;
    if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &error)) {
        fprintf(stderr, WHO ": %s: %s\n", path, error);
        LLVMDisposeMessage(error);
        return NULL;
    }
    failed = false;
    int bad = LLVMParseBitcodeInContext2(context, buffer, &module);
    LLVMDisposeMemoryBuffer(buffer);
    if (!bad && !failed)
        return module;
    if (!failed)
        fprintf(stderr, WHO ": %s: not LLVM bitcode\n", path);
    return NULL;
}

static LLVMModuleRef whole_program(LLVMContextRef context, char **paths, int count)
{
    LLVMModuleRef whole = NULL;
    for (int i = 0; i < count; i++) {
        LLVMModuleRef module = read_module(context, paths[i]);
        if (!module)
            return NULL;
        if (!whole) {
            whole = module;
        } else if (LLVMLinkModules2(whole, module)) {
            fprintf(stderr, WHO ": %s: does not go together with the files before it\n", paths[i]);
            return NULL;
        }
    }
    return whole;
}

/* Local variables whose address nobody takes become values: what a pointer holds is then known for each place. */
static bool values_of_locals(LLVMModuleRef module)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, "function(mem2reg)", NULL, options);
    LLVMDisposePassBuilderOptions(options);
    if (error)
        fprintf(stderr, WHO ": LLVM: %s\n", LLVMGetErrorMessage(error));
    return !error;
}

static void progress(uint64_t done, uint64_t waiting)
{
    fprintf(stderr, "\rpoints-to analysis: %" PRIu64 " steps, %" PRIu64 " waiting \033[K", done, waiting);
}

static const struct rf_site_line *all_sites;

static int by_place(const void *a, const void *b)
{
    const struct rf_site_line *one = &all_sites[*(const uint32_t *)a], *other = &all_sites[*(const uint32_t *)b];
    int order = strcmp(one->file, other->file);
    return order ? order : one->line < other->line ? -1 : one->line > other->line;
}

static int by_number(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return one < other ? -1 : one > other;
}

/* In the order of the source, whatever the order in which sites were met; a site that was met twice is one. */
static void order(struct rf_program_ir *program, struct rf_static_pairs *pairs)
{
    uint32_t *places = malloc((program->site_count + 1) * sizeof *places),
             *rank = malloc((program->site_count + 1) * sizeof *rank);
    struct rf_site_line *sites = malloc((program->site_count + 1) * sizeof *sites);
    if (!places || !rank || !sites) {
        fputs(WHO ": out of memory\n", stderr);
        exit(2);
    }
    size_t count = 0;
    for (uint32_t i = 0; i < program->site_count; i++)
        places[i] = i;
    all_sites = program->sites;
    qsort(places, program->site_count, sizeof *places, by_place);
    for (size_t i = 0; i < program->site_count; i++) {
        if (!count || by_place(&places[i], &places[i - 1]) != 0)
            sites[count++] = program->sites[places[i]];
        rank[places[i]] = (uint32_t)count - 1;
    }
    size_t kept = 0;
    for (size_t i = 0; i < pairs->count; i++) {
        uint64_t one = rank[pairs->pairs[i] >> 32], other = rank[(uint32_t)pairs->pairs[i]];
        pairs->pairs[i] = one < other ? one << 32 | other : other << 32 | one;
    }
    qsort(pairs->pairs, pairs->count, sizeof *pairs->pairs, by_number);
    for (size_t i = 0; i < pairs->count; i++)
        if (!kept || pairs->pairs[i] != pairs->pairs[kept - 1])
            pairs->pairs[kept++] = pairs->pairs[i];
    pairs->count = kept;
    program->sites = sites;
    program->site_count = count;
    free(places);
    free(rank);
}

static void print(FILE *out, bool json, const struct rf_program_ir *program, const struct rf_static_pairs *pairs)
{
    if (json)
        fputs("{\"pairs\": [", out);
    for (size_t i = 0; i < pairs->count; i++) {
        const struct rf_site_line *one = &program->sites[pairs->pairs[i] >> 32],
                                  *other = &program->sites[(uint32_t)pairs->pairs[i]];
        if (json)
            fprintf(out, "%s\n[\"%s:%u\", \"%s:%u\"]", i ? "," : "", one->file, one->line, other->file, other->line);
        else
            fprintf(out, "%s:%u %s:%u\n", one->file, one->line, other->file, other->line);
    }
    if (json)
        fprintf(out, "\n], \"sites\": %zu, \"accesses\": %zu, \"shared_objects\": %" PRIu64 ", \"objects\": %" PRIu64 "}\n",
                program->site_count, program->access_count, pairs->shared, pairs->objects);
}

static void statistics(const struct rf_program_ir *program, const struct rf_threads *threads,
                       const struct rf_static_pairs *pairs)
{
    size_t outside = 0;
    for (size_t i = 0; i < program->function_count; i++)
        outside += program->functions[i].called_from_outside;
    fprintf(stderr,
            "functions       %zu, %zu of them called from outside\nthreads         %u kinds, and the main one\n"
            "objects         %" PRIu64 ", %" PRIu64 " of them shared\naccesses        %zu at %zu sites, %" PRIu64
            " without a line\npairs           %zu\n",
            program->function_count, outside, threads->count - 1, pairs->objects, pairs->shared, program->access_count,
            program->site_count, program->without_line, pairs->count);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "output", required_argument, NULL, 'o' }, { "facts", required_argument, NULL, 'F' },
        { "format", required_argument, NULL, 'f' }, { "statistics", no_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' },         { NULL, 0, NULL, 0 }
    };
    const char *output = NULL, *facts = NULL;
    bool json = false, talks = false;
    for (int option; (option = getopt_long(argc, argv, "o:f:sh", options, NULL)) != -1;) {
        if (option == 'o') {
            output = optarg;
        } else if (option == 'F') {
            facts = optarg;
        } else if (option == 's') {
            talks = true;
        } else if (option == 'f' && (strcmp(optarg, "json") == 0 || strcmp(optarg, "text") == 0)) {
            json = optarg[0] == 'j';
        } else if (option == 'h') {
            puts(usage);
            return 0;
        } else {
            if (option == 'f')
                fprintf(stderr, WHO ": unknown format '%s'\n", optarg);
            return 2;
        }
    }
    if (optind == argc) {
        fputs(WHO ": no bitcode; try '" WHO " --help'\n", stderr);
        return 2;
    }
    LLVMContextRef context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(context, heard, NULL);
    struct rf_program_ir program = { .module = whole_program(context, argv + optind, argc - optind) };
    if (!program.module)
        return 2;
    if (!LLVMGetNamedFunction(program.module, "main") || LLVMIsDeclaration(LLVMGetNamedFunction(program.module, "main"))) {
        fputs(WHO ": there is no main(): give the bitcode of all files of the program\n", stderr);
        return 2;
    }
    bool shows = isatty(2);
    if (!values_of_locals(program.module))
        return 2;
    rf_program_analyze(&program, shows ? progress : NULL);
    if (shows)
        fputs("\r\033[K", stderr);
    if (!program.site_count) {
        fprintf(stderr, WHO ": %s: no lines: compile with -g\n", argv[optind]);
        return 2;
    }
    struct rf_threads threads;
    struct rf_static_pairs pairs;
    rf_threads_find(&threads, &program);
    rf_static_pairs_find(&pairs, &program, &threads);
    if (facts && !rf_static_facts_write(&program, facts)) {
        fprintf(stderr, WHO ": %s: %s\n", facts, strerror(errno));
        return 2;
    }
    order(&program, &pairs);
    FILE *out = output ? fopen(output, "we") : stdout;
    if (out)
        print(out, json, &program, &pairs);
    if (!out || (out == stdout ? fflush(out) : fclose(out)) != 0) {
        fprintf(stderr, WHO ": %s: %s\n", output ? output : "standard output", strerror(errno));
        return 2;
    }
    if (talks)
        statistics(&program, &threads, &pairs);
    return 0;
}
