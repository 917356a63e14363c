/* Any text as a file of suppressions, matched against a report that has a bit of everything. */
#include <stdlib.h>
#include <string.h>

#include "report/suppress.h"
#include "report/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rf_symbol frames[] = { { .function = "memset", .module = "/lib/rt.so", .runtime = true },
                                         { .function = "aaaaab(int*)", .file = "/src/a.c", .module = "/lib/liba.so" },
                                         { .module = "/bin/app" } };
    struct rf_rec_access access = { .stack = { .frames = frames, .frame_count = 3 } };
    struct rf_suppressions all = { 0 };
    char error[512], *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    if (rf_suppressions_parse(&all, text, "fuzz", error))
        for (int kind = 0; kind < RF_KINDS; kind++) {
            struct rf_record record = { .kind = (enum rf_kind)kind,
                                        .accesses = &access,
                                        .access_count = 1,
                                        .location = { .kind = RF_AT_GLOBAL, .name = "table[3]", .module = "/bin/app" } };
            rf_suppressions_match(&all, &record);
        }
    rf_suppressions_free(&all);
    free(text);
    return 0;
}
