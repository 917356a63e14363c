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
#include "static/print.h"

#define WHO "redflag static"

static const char usage[] =
    "usage: redflag static [OPTION...] FILE.bc...\n\n"
    "The pairs of sites that may race, of a whole program: the bitcode of all of its files, which `redflag cc --bitcode` leaves\n"
    "beside the objects. Prints lines 'SITE1 SITE2', a site being FILE:LINE.\n\n"
    "  -o, --output FILE      write the pairs there\n"
    "      --facts FILE       also write there what `redflag caper` needs to look at less: which memory each line may access\n"
    "  -f, --format FORM      text, json, or groups: shorter where there are many pairs (redflag caper reads both)\n"
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

static void statistics(const struct rf_program_ir *program, const struct rf_threads *threads,
                       const struct rf_static_pairs *pairs)
{
    size_t outside = 0;
    for (size_t i = 0; i < program->function_count; i++)
        outside += program->functions[i].called_from_outside;
    fprintf(stderr,
            "functions       %zu, %zu of them called from outside\nthreads         %u kinds, and the main one\n"
            "objects         %" PRIu64 ", %" PRIu64 " of them shared\naccesses        %zu at %zu sites, %" PRIu64
            " without a line\npairs           %" PRIu64 ", in %u groups of sites\n",
            program->function_count, outside, threads->count - 1, pairs->objects, pairs->shared, program->access_count,
            program->site_count, program->without_line, pairs->count, pairs->groups);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "output", required_argument, NULL, 'o' }, { "facts", required_argument, NULL, 'F' },
        { "format", required_argument, NULL, 'f' }, { "statistics", no_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' },         { NULL, 0, NULL, 0 }
    };
    const char *output = NULL, *facts = NULL;
    enum rf_static_form form = RF_STATIC_LINES;
    bool talks = false;
    for (int option; (option = getopt_long(argc, argv, "o:f:sh", options, NULL)) != -1;) {
        if (option == 'o') {
            output = optarg;
        } else if (option == 'F') {
            facts = optarg;
        } else if (option == 's') {
            talks = true;
        } else if (option == 'f' && rf_static_form_named(optarg, &form)) {
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
    FILE *out = output ? fopen(output, "we") : stdout;
    if (out)
        rf_static_print(out, form, &program, &pairs);
    if (!out || (out == stdout ? fflush(out) : fclose(out)) != 0) {
        fprintf(stderr, WHO ": %s: %s\n", output ? output : "standard output", strerror(errno));
        return 2;
    }
    if (talks)
        statistics(&program, &threads, &pairs);
    return 0;
}
