/* From a reader's events and names to text for people, and to a writer. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "trace/reader.h"
#include "trace/writer.h"

struct line {
    char *at, *end;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = (size_t)(line->end - line->at);
    int length = vsnprintf(line->at, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        line->at += (size_t)length < room ? (size_t)length : room - 1;
}

static void add_variable(struct line *line, const struct rf_reader *reader, const struct rf_event *event)
{
    char buffer[32];
    add(line, "%s", rf_reader_variable(reader, event->addr, buffer));
    if (event->addr < RF_NAMED_BASE && event->size != 1)
        add(line, ":%u", (unsigned)event->size);
}

void rf_reader_print(const struct rf_reader *reader, const struct rf_event *event, char *text, size_t size)
{
    if (size == 0)
        return;
    struct line line = { text, text + size };
    char buffer[32];
    enum rf_op op = (enum rf_op)event->op;
    const char *word = rf_op_text(op);
    if (!*word)
        word = op == RF_FORGET ? "forget" : op == RF_COPY_TO ? "copied" : rf_op_writes(op) ? "w" : "r";
    add(&line, "%s|%s%s(", rf_reader_thread(reader, event->thread), event->system ? "~" : "", word);
    switch (op) {
    case RF_FORK:
    case RF_JOIN:
    case RF_IDENTITY:
        add(&line, "%s", rf_reader_thread(reader, (uint32_t)event->addr));
        break;
    case RF_COPY:
        add_variable(&line, reader, event);
        add(&line, ",");
        add_variable(&line, reader, event + 1);
        break;
    case RF_COMMIT:
        for (uint32_t i = 1; i <= event->size; i++) {
            bool same = i > 1 && event[i].op == event[i - 1].op;
            add(&line, "%s%s", i == 1 ? "" : same ? "," : ";", same ? "" : event[i].op == RF_COMMIT_READ ? "r:" : "w:");
            add_variable(&line, reader, event + i);
        }
        break;
    case RF_SAMPLE_BEGIN:
    case RF_SAMPLE_END:
        break;
    default:
        if (rf_op_kind(op) == RF_SYNC || rf_op_kind(op) == RF_RAW)
            add(&line, "%s", rf_reader_object(reader, event->addr, buffer));
        else
            add_variable(&line, reader, event);
    }
    add(&line, ")|%s", rf_reader_site(reader, event->site));
}

static void declare_symbols(struct rf_writer *writer, const struct rf_symbols *from, const struct rf_symbols *to,
                            void (*declare)(struct rf_writer *writer, uint64_t addr, const char *name))
{
    for (size_t i = to->named.count; i < from->named.count; i++)
        declare(writer, RF_NAMED_BASE + (uint64_t)RF_GRANULE * i, from->named.entries[i].text);
    for (size_t i = to->texts.count; i < from->texts.count; i++)
        declare(writer, from->addresses[i], from->texts.entries[i].text);
}

void rf_writer_names(struct rf_writer *writer, const struct rf_reader *reader)
{
    const struct rf_tables *tables = &reader->tables;
    for (uint32_t i = writer->threads; i < tables->threads.count; i++)
        rf_writer_thread(writer, i, tables->threads.entries[i].text);
    for (uint32_t i = writer->sites; i < tables->sites.count; i++)
        rf_writer_site(writer, i, tables->sites.entries[i].text);
    declare_symbols(writer, &tables->variables, &writer->variables, rf_writer_variable);
    declare_symbols(writer, &tables->objects, &writer->objects, rf_writer_object);
}

uint64_t rf_writer_bytes(const struct rf_writer *writer)
{
    return writer->bytes;
}
