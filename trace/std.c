/* The parser of STD text (see std.h). */
#include "trace/std.h"

#include <stdarg.h>
#include <string.h>

#include "trace/grow.h"

struct span {
    const char *at, *end;
};

void rf_tables_init(struct rf_tables *tables)
{
    *tables = (struct rf_tables){ 0 };
    rf_names_intern(&tables->sites, "", 0); /* site 0 is "none" */
}

void rf_tables_free(struct rf_tables *tables)
{
    for (size_t i = 0; i < tables->owners.names.count; i++)
        free(tables->owners.owners[i].variables);
    free(tables->owners.owners);
    rf_names_free(&tables->owners.names);
    rf_names_free(&tables->threads);
    rf_names_free(&tables->sites);
    rf_symbols_free(&tables->variables);
    rf_symbols_free(&tables->objects);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static struct span trim(struct span s)
{
    while (s.at < s.end && is_blank(*s.at))
        s.at++;
    while (s.at < s.end && is_blank(s.end[-1]))
        s.end--;
    return s;
}

static size_t length(struct span s)
{
    return (size_t)(s.end - s.at);
}

__attribute__((format(printf, 2, 3))) static bool fail(struct rf_std_parser *parser, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parser->flaw, sizeof parser->flaw, format, arguments);
    va_end(arguments);
    for (char *c = parser->flaw; *c; c++) /* one printable line, whatever the trace holds */
        if ((unsigned char)*c < 0x20)
            *c = '?';
    return false;
}

/* How much of a text a message shows. */
static int shown(struct span s)
{
    return length(s) > 40 ? 40 : (int)length(s);
}

static bool hex_digit(char c, unsigned *value)
{
    if (c >= '0' && c <= '9')
        *value = (unsigned)(c - '0');
    else if (c >= 'a' && c <= 'f')
        *value = (unsigned)(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F')
        *value = (unsigned)(c - 'A') + 10;
    else
        return false;
    return true;
}

static bool is_address(struct span s)
{
    return length(s) >= 2 && s.at[0] == '0' && (s.at[1] == 'x' || s.at[1] == 'X');
}

/* 0xHEX or 0xHEX:SIZE; *size is 0 if none is given. */
static bool parse_address(struct rf_std_parser *parser, struct span s, uint64_t *addr, uint64_t *size)
{
    const char *p = s.at + 2;
    unsigned digit;
    *addr = *size = 0;
    if (p == s.end || !hex_digit(*p, &digit))
        return fail(parser, "bad address '%.*s'", shown(s), s.at);
    for (; p < s.end && hex_digit(*p, &digit); p++) {
        if (*addr >> 60)
            return fail(parser, "address '%.*s' is too large", shown(s), s.at);
        *addr = *addr << 4 | digit;
    }
    if (*addr >= RF_NAMED_BASE)
        return fail(parser, "address '%.*s' is too large", shown(s), s.at);
    if (p == s.end)
        return true;
    if (*p++ != ':' || p == s.end)
        return fail(parser, "bad address '%.*s'", shown(s), s.at);
    for (; p < s.end; p++) {
        if (*p < '0' || *p > '9')
            return fail(parser, "bad size in '%.*s'", shown(s), s.at);
        *size = *size * 10 + (uint64_t)(*p - '0');
        if (*size > RF_STD_MAX_RANGE)
            return fail(parser, "the size in '%.*s' is too large", shown(s), s.at);
    }
    if (*size == 0)
        return fail(parser, "the size in '%.*s' is zero", shown(s), s.at);
    if (*addr + *size > RF_NAMED_BASE)
        return fail(parser, "address '%.*s' is too large", shown(s), s.at);
    return true;
}

static void register_field(struct rf_tables *tables, uint32_t index)
{
    const struct rf_name *name = &tables->variables.named.entries[index];
    struct rf_owners *owners = &tables->owners;
    for (uint32_t i = 1; i < name->length; i++) {
        if (name->text[i] != '.' && name->text[i] != '[')
            continue;
        size_t known = owners->names.count;
        uint32_t owner = rf_names_intern_borrowed(&owners->names, name->text, i);
        if (owner == known) {
            owners->owners = rf_reserve(owners->owners, &owners->capacity, known + 1, sizeof *owners->owners);
            owners->owners[owner] = (struct rf_owner){ 0 };
        }
        struct rf_owner *list = &owners->owners[owner];
        list->variables = rf_reserve(list->variables, &list->capacity, list->count + 1, sizeof *list->variables);
        list->variables[list->count++] = index;
    }
}

static uint64_t named(uint32_t index)
{
    return RF_NAMED_BASE + (uint64_t)RF_GRANULE * index;
}

static uint32_t variable_index(struct rf_std_parser *parser, struct span name)
{
    struct rf_tables *tables = parser->tables;
    size_t known = tables->variables.named.count;
    uint32_t index = rf_names_intern(&tables->variables.named, name.at, length(name));
    if (index == known)
        register_field(tables, index);
    if (index >= parser->seen)
        parser->seen = index + 1;
    return index;
}

/* A variable: a name, which stands for a granule, or an address. */
static bool parse_variable(struct rf_std_parser *parser, struct span s, uint64_t limit, uint64_t *addr, uint64_t *size)
{
    s = trim(s);
    if (s.at == s.end)
        return fail(parser, "a variable is missing");
    if (is_address(s)) {
        if (!parse_address(parser, s, addr, size))
            return false;
        if (*size == 0)
            *size = 1;
        if (*size > limit)
            return fail(parser, "the size in '%.*s' is too large", shown(s), s.at);
        return true;
    }
    *addr = named(variable_index(parser, s));
    *size = RF_GRANULE;
    return true;
}

static bool parse_object(struct rf_std_parser *parser, struct span s, uint64_t *addr)
{
    if (s.at == s.end)
        return fail(parser, "the name of a lock or other object is missing");
    if (is_address(s)) {
        uint64_t size;
        if (!parse_address(parser, s, addr, &size))
            return false;
        return size == 0 || fail(parser, "an object has no size: '%.*s'", shown(s), s.at);
    }
    *addr = named(rf_names_intern(&parser->tables->objects.named, s.at, length(s)));
    return true;
}

/* For names of a few bytes. memcmp() was a third of the time of reading text, nearly all of it at its masked load of the 32 bytes that a
 * name begins: they may reach into a page that nobody has touched. */
static bool is_same_short(const char *a, const char *b, size_t length)
{
    while (length && *a == *b)
        a++, b++, length--;
    return !length;
}

static bool parse_thread(struct rf_std_parser *parser, struct span s, uint32_t *thread)
{
    const struct rf_names *threads = &parser->tables->threads;
    if (s.at == s.end)
        return fail(parser, "the name of a thread is missing");
    if (parser->last_thread < threads->count) {
        const struct rf_name *last = &threads->entries[parser->last_thread];
        if (last->length == length(s) && is_same_short(last->text, s.at, last->length)) {
            *thread = parser->last_thread;
            return true;
        }
    }
    *thread = rf_names_intern(&parser->tables->threads, s.at, length(s));
    return true;
}

static void emit(struct rf_std_parser *parser, struct rf_event event, enum rf_op op, uint64_t addr, uint64_t size)
{
    event.op = (uint32_t)op & 0x7fu;
    event.addr = addr;
    event.size = (uint32_t)size & 0xffffffu;
    if (parser->count == parser->capacity)
        parser->events = rf_reserve(parser->events, &parser->capacity, parser->count + 1, sizeof *parser->events);
    parser->events[parser->count++] = event;
    parser->ops |= 1u << op | (event.system ? RF_OPS_SYSTEM : 0);
}

/* One event for each granule that is touched. */
static void emit_access(struct rf_std_parser *parser, struct rf_event event, enum rf_op op, uint64_t addr, uint64_t size)
{
    while (size) {
        uint64_t piece = RF_GRANULE - (addr & (RF_GRANULE - 1));
        if (piece > size)
            piece = size;
        emit(parser, event, op, addr, piece);
        addr += piece;
        size -= piece;
    }
}

static void emit_range(struct rf_std_parser *parser, struct rf_event event, enum rf_op op, uint64_t addr, uint64_t size)
{
    for (; size > RF_MAX_SIZE; addr += RF_MAX_SIZE, size -= RF_MAX_SIZE)
        emit(parser, event, op, addr, RF_MAX_SIZE);
    emit(parser, event, op, addr, size);
}

static const struct rf_owner *fields_of(const struct rf_std_parser *parser, struct span name)
{
    uint32_t owner = rf_names_find(&parser->tables->owners.names, name.at, length(name));
    return owner == RF_NO_NAME ? NULL : &parser->tables->owners.owners[owner];
}

static bool parse_memory(struct rf_std_parser *parser, struct rf_event event, enum rf_op op, struct span s)
{
    uint64_t addr = 0, size = 0;
    s = trim(s);
    if (!parse_variable(parser, s, RF_STD_MAX_RANGE, &addr, &size))
        return false;
    emit_range(parser, event, op, addr, size);
    if (is_address(s))
        return true;
    const struct rf_owner *fields = fields_of(parser, s);
    for (size_t i = 0; fields && i < fields->count; i++)
        if (fields->variables[i] < parser->seen)
            emit(parser, event, op, named(fields->variables[i]), RF_GRANULE);
    return true;
}

static void emit_copy(struct rf_std_parser *parser, struct rf_event event, uint64_t from, uint64_t to, uint64_t size)
{
    while (size) {
        uint64_t piece = size > RF_MAX_SIZE ? RF_MAX_SIZE : size;
        emit(parser, event, RF_COPY, from, piece);
        emit(parser, event, RF_COPY_TO, to, piece);
        from += piece;
        to += piece;
        size -= piece;
    }
}

/* Moves every field that `walked` has seen so far: walked.f stands for itself, and for the field of the same name of
 * `other`. Fields that only the target has are moved from a source that nobody has touched: they become new. */
static bool copy_fields(struct rf_std_parser *parser, struct rf_event event, struct span walked, struct span other,
                        bool back)
{
    const struct rf_owner *fields = fields_of(parser, walked);
    if (!fields)
        return true;
    uint32_t seen = parser->seen;
    size_t count = fields->count;
    uint32_t owner = rf_names_find(&parser->tables->owners.names, walked.at, length(walked));
    if (count > RF_STD_MAX_FIELDS)
        return fail(parser, "'%.*s' has too many fields to copy", shown(walked), walked.at);
    for (size_t i = 0; i < count; i++) {
        /* Naming a field may move the tables: look the entry up each time. */
        uint32_t field = parser->tables->owners.owners[owner].variables[i];
        if (field >= seen)
            continue;
        const struct rf_name *name = &parser->tables->variables.named.entries[field];
        size_t tail = name->length - length(walked), total = length(other) + tail;
        char small[256], *text = total <= sizeof small ? small : rf_resize(NULL, total);
        memcpy(text, other.at, length(other));
        memcpy(text + length(other), name->text + length(walked), tail);
        uint32_t known = rf_names_find(&parser->tables->variables.named, text, total);
        bool met = known != RF_NO_NAME && known < seen;
        if (!back || !met) {
            uint64_t twin = named(variable_index(parser, (struct span){ text, text + total }));
            emit_copy(parser, event, back ? twin : named(field), back ? named(field) : twin, RF_GRANULE);
        }
        if (text != small)
            free(text);
    }
    return true;
}

static bool inside(struct span outer, struct span inner)
{
    return length(inner) > length(outer) && memcmp(inner.at, outer.at, length(outer)) == 0 &&
           (inner.at[length(outer)] == '.' || inner.at[length(outer)] == '[');
}

static bool parse_copy(struct rf_std_parser *parser, struct rf_event event, struct span s)
{
    const char *comma = memchr(s.at, ',', length(s));
    if (!comma)
        return fail(parser, "copy needs two variables");
    struct span from = trim((struct span){ s.at, comma }), to = trim((struct span){ comma + 1, s.end });
    uint64_t source = 0, target = 0, source_size = 0, size = 0;
    if (is_address(from) != is_address(to))
        return fail(parser, "copy needs two names or two addresses");
    if (inside(from, to) || inside(to, from))
        return fail(parser, "copy of a name into itself");
    if (!parse_variable(parser, from, RF_STD_MAX_RANGE, &source, &source_size) ||
        !parse_variable(parser, to, RF_STD_MAX_RANGE, &target, &size))
        return false;
    if (is_address(from)) {
        if (memchr(from.at, ':', length(from)) && source_size != size)
            return fail(parser, "the two sides of a copy differ in size");
        if (source + size > RF_NAMED_BASE)
            return fail(parser, "address '%.*s' is too large", shown(from), from.at);
        emit_copy(parser, event, source, target, size);
        return true;
    }
    emit_copy(parser, event, source, target, RF_GRANULE);
    return copy_fields(parser, event, from, to, false) && copy_fields(parser, event, to, from, true);
}

/* commit(r:a,b;w:c), either half may be missing. */
static bool parse_commit(struct rf_std_parser *parser, struct rf_event event, struct span s)
{
    size_t head = parser->count;
    emit(parser, event, RF_COMMIT, 0, 0);
    s = trim(s);
    while (s.at < s.end) {
        const char *semicolon = memchr(s.at, ';', length(s));
        struct span half = trim((struct span){ s.at, semicolon ? semicolon : s.end });
        s.at = semicolon ? semicolon + 1 : s.end;
        if (length(half) < 2 || half.at[1] != ':' || (half.at[0] != 'r' && half.at[0] != 'w'))
            return fail(parser, "commit takes r:... and w:..., not '%.*s'", shown(half), half.at);
        enum rf_op op = half.at[0] == 'r' ? RF_COMMIT_READ : RF_COMMIT_WRITE;
        half = trim((struct span){ half.at + 2, half.end });
        while (half.at < half.end) {
            const char *comma = memchr(half.at, ',', length(half));
            uint64_t addr = 0, size = 0;
            if (!parse_variable(parser, (struct span){ half.at, comma ? comma : half.end }, RF_STD_MAX_ACCESS, &addr, &size))
                return false;
            emit_access(parser, event, op, addr, size);
            if (parser->count - head > RF_STD_MAX_ACCESS)
                return fail(parser, "a commit touches too much memory");
            half.at = comma ? comma + 1 : half.end;
        }
    }
    parser->events[head].size = (uint32_t)(parser->count - head - 1) & 0xffffffu;
    return true;
}

static bool is_word(struct span s, const char *word)
{
    return strlen(word) == length(s) && memcmp(word, s.at, length(s)) == 0;
}

/* The operation of a word; RF_OP_COUNT if there is none. */
static enum rf_op parse_word(struct span s)
{
    if (length(s) == 1)
        return *s.at == 'r' ? RF_READ : *s.at == 'w' ? RF_WRITE : RF_OP_COUNT;
    for (int op = RF_ACQUIRE; op < RF_OP_COUNT; op++) {
        const char *word = rf_op_text((enum rf_op)op);
        if (*word == *s.at && is_word(s, word))
            return (enum rf_op)op;
    }
    return RF_OP_COUNT;
}

static bool parse_event(struct rf_std_parser *parser, struct rf_event event, struct span s)
{
    const char *open = memchr(s.at, '(', length(s));
    struct span word = trim((struct span){ s.at, open ? open : s.end });
    if (word.at < word.end && *word.at == '~') { /* the runtime system's */
        event.system = 1;
        word.at++;
    }
    if (word.at == word.end)
        return fail(parser, "the operation is missing");
    enum rf_op op = parse_word(word);
    if (op == RF_OP_COUNT && (is_word(word, "begin") || is_word(word, "end")))
        return true; /* RAPID's atomic blocks order nothing */
    if (op == RF_OP_COUNT)
        return fail(parser, "unknown operation '%.*s'", shown(word), word.at);
    if (open && s.end[-1] != ')')
        return fail(parser, "')' is missing after '%.*s'", shown(s), s.at);
    bool bare = op == RF_SAMPLE_BEGIN || op == RF_SAMPLE_END;
    if (!open && !bare)
        return fail(parser, "'(' is missing after '%.*s'", shown(word), word.at);
    struct span argument = open ? trim((struct span){ open + 1, s.end - 1 }) : (struct span){ s.end, s.end };

    uint64_t addr = 0, size = 0;
    uint32_t other = 0;
    switch (op) {
    case RF_READ:
    case RF_WRITE:
        if (!parse_variable(parser, argument, RF_STD_MAX_ACCESS, &addr, &size))
            return false;
        emit_access(parser, event, op, addr, size);
        return true;
    case RF_FORK:
    case RF_JOIN:
    case RF_IDENTITY:
        if (!parse_thread(parser, argument, &other))
            return false;
        emit(parser, event, op, other, 0);
        return true;
    case RF_ALLOC:
    case RF_FREE:
        return parse_memory(parser, event, op, argument);
    case RF_COPY:
        return parse_copy(parser, event, argument);
    case RF_COMMIT:
        return parse_commit(parser, event, argument);
    case RF_SAMPLE_BEGIN:
    case RF_SAMPLE_END:
        if (argument.at != argument.end)
            return fail(parser, "%s takes no argument", rf_op_text(op));
        emit(parser, event, op, 0, 0);
        return true;
    default:
        if (!parse_object(parser, argument, &addr))
            return false;
        emit(parser, event, op, addr, 0);
        return true;
    }
}

static struct span strip_comment(struct span line)
{
    const char *from = line.at, *hash;
    while ((hash = memchr(from, '#', (size_t)(line.end - from)))) {
        if (hash == line.at || is_blank(hash[-1]))
            return (struct span){ line.at, hash };
        from = hash + 1;
    }
    return line;
}

static bool parse_line(struct rf_std_parser *parser, struct span line)
{
    line = trim(strip_comment(trim(line)));
    if (line.at == line.end)
        return true;
    const char *bar = memchr(line.at, '|', length(line));
    if (!bar)
        return fail(parser, "not THREAD|op(argument)|site: '%.*s'", shown(line), line.at);
    struct rf_event event = { .number = (uint32_t)(parser->line + 1) };
    if (!parse_thread(parser, trim((struct span){ line.at, bar }), &event.thread))
        return false;
    parser->last_thread = event.thread;
    struct span rest = { bar + 1, line.end };
    bar = memchr(rest.at, '|', length(rest));
    if (bar) {
        struct span site = trim((struct span){ bar + 1, line.end });
        if (site.at < site.end)
            event.site = rf_names_intern(&parser->tables->sites, site.at, length(site));
        rest.end = bar;
    }
    return parse_event(parser, event, trim(rest));
}

size_t rf_std_parse(struct rf_std_parser *parser, const char *text, size_t size, bool final, size_t limit)
{
    const char *at = text, *end = text + size;
    while (at < end && parser->count < limit) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline && !final)
            break;
        struct span line = { at, newline ? newline : end };
        size_t before = parser->count;
        bool good;
        if (length(line) > RF_STD_MAX_LINE)
            good = fail(parser, "the line is too long");
        else if (parser->zeros && memchr(line.at, 0, length(line)))
            good = fail(parser, "the line holds a zero byte");
        else
            good = parse_line(parser, line);
        if (!good) {
            parser->count = before;
            break;
        }
        parser->line++;
        at = newline ? newline + 1 : end;
    }
    return (size_t)(at - text);
}
