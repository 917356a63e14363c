/* Writing STD text.
 *
 * 1. Events that the parser would make from one line, by cutting a wide access or range, by naming the fields of an object,
 *    or as the parts of a commit or copy, are gathered and become that line again.
 * 2. An event stands on the line of its number, as long as it can: empty lines stand for numbers that no event has.
 */
#include <string.h>

#include "trace/grow.h"
#include "trace/std.h"
#include "trace/writer.h"

#define TEXT_BYTES (256u << 10)
#define MAX_PADDING (64u << 10) /* a larger gap in the numbers is not filled */

char *rf_text_escape(const char *name, enum rf_text_name kind)
{
    size_t length = strlen(name), at = 0;
    char *text = rf_resize(NULL, 3 * length + 2);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        bool blank = c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
        bool edge = i == 0 || i == length - 1;
        bool bad = c == '\n' || (blank && edge) || (kind != RF_TEXT_PLACE && c == '|');
        bad |= c == '#' && (i == 0 || name[i - 1] == ' ' || (name[i - 1] >= '\t' && name[i - 1] <= '\r'));
        bad |= kind == RF_TEXT_VARIABLE && i == 0 && c == '0' && (name[1] == 'x' || name[1] == 'X');
        if (bad)
            at += (size_t)sprintf(text + at, "%%%02x", c);
        else
            text[at++] = (char)c;
    }
    if (at == 0 && kind != RF_TEXT_PLACE)
        text[at++] = '%';
    text[at] = 0;
    return text;
}

static void drain(struct rf_writer *writer)
{
    rf_writer_put(writer, writer->text, writer->text_size);
    writer->text_size = 0;
}

static void put(struct rf_writer *writer, const char *bytes, size_t size)
{
    if (!writer->text)
        writer->text = rf_resize(NULL, TEXT_BYTES);
    if (writer->text_size + size > TEXT_BYTES)
        drain(writer);
    if (size > TEXT_BYTES) {
        rf_writer_put(writer, bytes, size);
        return;
    }
    memcpy(writer->text + writer->text_size, bytes, size);
    writer->text_size += size;
}

static void put_char(struct rf_writer *writer, char c)
{
    put(writer, &c, 1);
}

static void put_hex(struct rf_writer *writer, uint64_t value)
{
    char digits[18];
    size_t at = sizeof digits;
    do
        digits[--at] = "0123456789abcdef"[value & 15];
    while (value >>= 4);
    digits[--at] = 'x';
    digits[--at] = '0';
    put(writer, digits + at, sizeof digits - at);
}

static void put_decimal(struct rf_writer *writer, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    put(writer, digits + at, sizeof digits - at);
}

static void put_name(struct rf_writer *writer, const struct rf_names *names, uint64_t index)
{
    put(writer, names->entries[index].text, names->entries[index].length);
}

/* In a list of variables a comma or semicolon would end the name. */
static void put_listed(struct rf_writer *writer, const struct rf_name *name)
{
    for (uint32_t i = 0; i < name->length; i++) {
        char c = name->text[i];
        if (c == ',')
            put(writer, "%2c", 3);
        else if (c == ';')
            put(writer, "%3b", 3);
        else
            put_char(writer, c);
    }
}

static const struct rf_name *variable_name(const struct rf_writer *writer, uint64_t addr)
{
    return addr >= RF_NAMED_BASE ? rf_symbols_name(&writer->variables, addr) : NULL;
}

static void put_variable(struct rf_writer *writer, uint64_t addr, uint64_t size, bool listed)
{
    const struct rf_name *name = variable_name(writer, addr);
    if (name && listed) {
        put_listed(writer, name);
    } else if (name) {
        put(writer, name->text, name->length);
    } else {
        put_hex(writer, addr);
        if (size != 1) {
            put_char(writer, ':');
            put_decimal(writer, size);
        }
    }
}

static void put_object(struct rf_writer *writer, uint64_t addr)
{
    const struct rf_name *name = addr >= RF_NAMED_BASE ? rf_symbols_name(&writer->objects, addr) : NULL;
    if (name)
        put(writer, name->text, name->length);
    else
        put_hex(writer, addr);
}

/* Does the parser cut a range between these two events? Accesses at granules, ranges where one has the largest size. */
static bool is_cut(const struct rf_event *before, const struct rf_event *after)
{
    bool meets = after->op == before->op && after->addr == before->addr + before->size && after->addr < RF_NAMED_BASE;
    bool range = before->op == RF_ALLOC || before->op == RF_FREE || before->op == RF_COPY;
    return meets && (range ? before->size == RF_MAX_SIZE : after->addr % RF_GRANULE == 0);
}

/* Bytes of a run of events, each `stride` events apart, that were one before they were cut. */
static uint64_t run_bytes(const struct rf_event *events, size_t count, size_t stride, size_t *length)
{
    uint64_t bytes = events[0].size;
    size_t i = stride;
    while (i < count && is_cut(&events[i - stride], &events[i])) {
        bytes += events[i].size;
        i += stride;
    }
    *length = i;
    return bytes;
}

static void put_commit(struct rf_writer *writer)
{
    const struct rf_event *events = writer->pending;
    size_t length;
    for (size_t i = 1; i < writer->count; i += length) {
        uint64_t bytes = run_bytes(events + i, writer->count - i, 1, &length);
        bool first = i == 1, same = !first && events[i].op == events[i - 1].op;
        if (!first)
            put_char(writer, same ? ',' : ';');
        if (!same)
            put(writer, events[i].op == RF_COMMIT_READ ? "r:" : "w:", 2);
        put_variable(writer, events[i].addr, bytes, true);
    }
}

static void put_argument(struct rf_writer *writer)
{
    const struct rf_event *head = &writer->pending[0];
    size_t length;
    switch (head->op) {
    case RF_READ:
    case RF_WRITE:
    case RF_ALLOC:
    case RF_FREE:
        put_variable(writer, head->addr, run_bytes(head, writer->count, 1, &length), false);
        break;
    case RF_COPY:
        if (variable_name(writer, head->addr))
            put_variable(writer, head->addr, 1, true);
        else
            put_hex(writer, head->addr);
        put_char(writer, ',');
        put_variable(writer, head[1].addr, run_bytes(head, writer->count, 2, &length), true);
        break;
    case RF_COMMIT:
        put_commit(writer);
        break;
    case RF_FORK:
    case RF_JOIN:
    case RF_IDENTITY:
        put_name(writer, &writer->thread_names, head->addr);
        break;
    case RF_SAMPLE_BEGIN:
    case RF_SAMPLE_END:
        break;
    default:
        put_object(writer, head->addr);
    }
}

static void put_line(struct rf_writer *writer)
{
    const struct rf_event *head = &writer->pending[0];
    const char *word = rf_op_text((enum rf_op)head->op);
    if (writer->first > writer->line + 1 && writer->first - writer->line <= MAX_PADDING)
        while (writer->first > writer->line + 1) {
            put_char(writer, '\n');
            writer->line++;
        }
    if (!*word) { /* only frees memory, and no text names it: a remark */
        put(writer, "# ", 2);
        word = "forget";
    }
    put_name(writer, &writer->thread_names, head->thread);
    put_char(writer, '|');
    if (head->system)
        put_char(writer, '~');
    put(writer, word, strlen(word));
    put_char(writer, '(');
    put_argument(writer);
    put(writer, ")|", 2);
    put_name(writer, &writer->site_names, head->site);
    put_char(writer, '\n');
    writer->line++;
    writer->count = 0;
}

static bool is_field(const struct rf_name *owner, const struct rf_name *name)
{
    return owner && name && name->length > owner->length && memcmp(owner->text, name->text, owner->length) == 0 &&
           (name->text[owner->length] == '.' || name->text[owner->length] == '[');
}

/* Would the parser make this event from the line that is being gathered? */
static bool belongs(const struct rf_writer *writer, uint64_t number, const struct rf_event *event)
{
    if (writer->count == 0)
        return false;
    const struct rf_event *head = &writer->pending[0];
    if (rf_op_kind((enum rf_op)event->op) == RF_PART)
        return true;
    if (number != writer->last_number || event->thread != head->thread || event->site != head->site || event->op != head->op ||
        event->system != head->system)
        return false;
    const struct rf_event *last = &writer->pending[writer->count - (head->op == RF_COPY ? 2 : 1)];
    switch (event->op) {
    case RF_READ:
    case RF_WRITE:
        return is_cut(last, event) && writer->count < RF_STD_MAX_ACCESS / RF_GRANULE;
    case RF_ALLOC:
    case RF_FREE:
    case RF_COPY:
        return is_cut(last, event) || is_field(variable_name(writer, head->addr), variable_name(writer, event->addr));
    default:
        return false;
    }
}

void rf_text_event(struct rf_writer *writer, uint64_t number, const struct rf_event *event)
{
    if (!belongs(writer, number, event)) {
        if (writer->count)
            put_line(writer);
        writer->first = number;
    }
    writer->pending = rf_reserve(writer->pending, &writer->capacity, writer->count + 1, sizeof *writer->pending);
    writer->pending[writer->count++] = *event;
}

void rf_text_flush(struct rf_writer *writer)
{
    if (writer->error)
        return;
    if (writer->count)
        put_line(writer);
    drain(writer);
}
