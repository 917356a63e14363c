/* Any bytes as a message of the runtime: refused with a reason, or read; and what was read can be written in every format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/writers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The frames that a symbolizer would have found, without files to look into. */
static void pretend(struct rf_stack *stack)
{
    stack->frames = calloc(stack->count + 1, sizeof *stack->frames);
    for (uint32_t i = 0; i < stack->count && i < 16; i++)
        stack->frames[stack->frame_count++] = (struct rf_symbol){ .function = i % 3 ? "f" : NULL,
                                                                  .file = i % 2 ? "/a b/c.c" : NULL,
                                                                  .line = i,
                                                                  .module = i % 5 ? "/m\xff" : NULL,
                                                                  .pc = stack->pcs[i],
                                                                  .runtime = i == 0,
                                                                  .inlined = i == 2 };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char first[] = "redflag 1 report\n";
    struct rf_message message;
    char error[160], *text = malloc(size + sizeof first), *out_text = NULL;
    size_t out_size, length = size;
    memcpy(text, data, size);
    if (size && data[0] == '+') { /* most inputs need not find the first line again */
        memcpy(text, first, sizeof first - 1);
        memcpy(text + sizeof first - 1, data + 1, size - 1);
        length = size - 1 + sizeof first - 1;
    }
    if (rf_message_read(&message, text, length, error)) {
        struct rf_record *record = &message.record;
        struct rf_writing how = { .pid = 1,
                                  .frame_format = " #%n %f %S %M %p %m %o %b %s %l %c %F %L %% %z",
                                  .strip_prefix = "/a" };
        for (uint32_t i = 0; i < record->access_count; i++)
            pretend(&record->accesses[i].stack);
        for (uint32_t i = 0; i < record->stack_count; i++)
            pretend(&record->stacks[i]);
        for (uint32_t i = 0; i < record->thread_count; i++)
            pretend(&record->threads[i].stack);
        FILE *out = open_memstream(&out_text, &out_size);
        rf_write_text(out, record, &how);
        how.tsan = how.second_stack = how.color = true;
        how.frame_format = NULL;
        rf_write_text(out, record, &how);
        rf_write_jsonl(out, record, &how);
        rf_sarif.write(out, record, &how);
        rf_junit.write(out, record, &how);
        fclose(out);
        free(out_text);
        rf_message_free(&message);
    }
    free(text);
    return 0;
}
