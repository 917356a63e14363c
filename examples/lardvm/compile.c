/* From text to instructions: a lexer, and a parser that emits as it goes.
 *
 *   program    { class NAME "{" { ["volatile"] name ";" } "}" | global NAME ";" | fn NAME "(" names ")" block }
 *   statement  var NAME "=" e ";" | if "(" e ")" block [ else block ] | while "(" e ")" block | lock "(" e ")" block | return [e] ";"
 *              | print e ";" | join e ";" | yield ";" | collect ";" | reach e ";" | await e ";" | e [ "=" e ] ";"
 *   e          the usual operators of C on numbers, nil, new NAME, array(e), len(e), f(e, ...), spawn f(...), go f(...), e.name, e[e]
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "vm.h"

#define MAX_LOCALS 64u
#define MAX_LOCKS 16u

struct token {
    enum { END, NAME, NUMBER, SIGN } kind;
    char text[64];
    int64_t number;
};

static const char *at;
static unsigned line = 1;
static struct token token; /* the next one */
static struct function *now;
static char *locals[MAX_LOCALS];
static unsigned local_count, held[MAX_LOCKS], held_count; /* locals with the objects of the lock blocks around */

static _Noreturn void bad(const char *what)
{
    die("%s:%u: %s", program.file, line, what);
}

/* ---- tokens ---- */

static void next(void)
{
    for (;; at++) {
        if (*at == '\n')
            line++;
        else if (*at == '#' || (at[0] == '/' && at[1] == '/'))
            while (at[1] && at[1] != '\n')
                at++;
        else if (!isspace((unsigned char)*at))
            break;
    }
    size_t length = 0;
    token.kind = !*at ? END : isalpha((unsigned char)*at) ? NAME : isdigit((unsigned char)*at) ? NUMBER : SIGN;
    if (token.kind == NAME) {
        while (isalnum((unsigned char)at[length]) || at[length] == '_')
            length++;
    } else if (token.kind == NUMBER) {
        char *end;
        token.number = strtoll(at, &end, 10);
        length = (size_t)(end - at);
    } else if (token.kind == SIGN) {
        static const char *const two[] = { "==", "!=", "<=", ">=", "&&", "||" };
        length = 1;
        for (size_t i = 0; i < sizeof two / sizeof *two; i++)
            if (!strncmp(at, two[i], 2))
                length = 2;
    }
    if (length >= sizeof token.text)
        bad("a name is too long");
    memcpy(token.text, at, length);
    token.text[length] = 0;
    at += length;
}

static bool is(const char *text)
{
    return token.kind != NUMBER && !strcmp(token.text, text);
}

static bool take(const char *text)
{
    bool found = is(text);
    if (found)
        next();
    return found;
}

static void need(const char *text)
{
    char what[100];
    if (!take(text)) {
        snprintf(what, sizeof what, "'%s' expected, not '%s'", text, token.text);
        bad(what);
    }
}

static char *need_name(void)
{
    if (token.kind != NAME)
        bad("a name is expected");
    char *name = strdup(token.text);
    next();
    return name;
}

/* ---- what names stand for ---- */

static unsigned field_name(const char *name)
{
    for (unsigned i = 0; i < program.name_count; i++)
        if (!strcmp(program.names[i], name))
            return i;
    if (program.name_count == MAX_NAMES)
        bad("too many names of fields");
    program.names[program.name_count] = strdup(name);
    return program.name_count++;
}

static int find(char *const *names, unsigned count, const char *name)
{
    for (unsigned i = count; i-- > 0;)
        if (!strcmp(names[i], name))
            return (int)i;
    return -1;
}

static unsigned new_local(char *name)
{
    if (local_count == MAX_LOCALS)
        bad("too many local variables");
    locals[local_count] = name;
    if (local_count + 1 > now->locals)
        now->locals = local_count + 1;
    return local_count++;
}

/* Functions may be called before they are defined. */
static unsigned function_named(const char *name)
{
    for (unsigned i = 0; i < program.function_count; i++)
        if (!strcmp(program.functions[i].name, name))
            return i;
    program.functions = realloc(program.functions, (program.function_count + 1) * sizeof *program.functions);
    program.functions[program.function_count] = (struct function){ .name = strdup(name) };
    return program.function_count++;
}

static int class_named(const char *name)
{
    for (unsigned i = 0; i < program.class_count; i++)
        if (!strcmp(program.classes[i].name, name))
            return (int)i;
    return -1;
}

/* ---- instructions ---- */

static unsigned emit(enum op op, int64_t a)
{
    if (now->count == now->cap) {
        now->cap = now->cap ? 2 * now->cap : 32;
        now->code = realloc(now->code, now->cap * sizeof *now->code);
    }
    now->code[now->count] = (struct instruction){ .op = op, .a = a, .line = line };
    return now->count++;
}

static void expression(void);
static void block(void);

static void call(enum op op)
{
    char *name = need_name();
    unsigned here = (unsigned)(now - program.functions), arguments = 0;
    need("(");
    while (!is(")")) {
        expression();
        arguments++;
        if (!take(","))
            break;
    }
    need(")");
    unsigned function = function_named(name);
    now = &program.functions[here]; /* the list may have moved */
    free(name);
    emit(op, (int64_t)function << 8 | arguments);
}

static void in_parentheses(enum op op)
{
    need("(");
    expression();
    need(")");
    emit(op, 0);
}

static void simple(void)
{
    if (token.kind == NUMBER) {
        emit(PUSH, (int64_t)number(token.number));
        next();
    } else if (take("(")) {
        expression();
        need(")");
    } else if (take("nil")) {
        emit(NIL, 0);
    } else if (take("new")) {
        char *name = need_name();
        int class = class_named(name);
        if (class < 0)
            bad("new: there is no such class");
        free(name);
        emit(NEW, class);
    } else if (take("array")) {
        in_parentheses(ARRAY);
    } else if (take("len")) {
        in_parentheses(LENGTH);
    } else if (take("spawn")) {
        call(SPAWN);
    } else if (take("go")) {
        call(GO);
    } else if (token.kind == NAME) {
        int local = find(locals, local_count, token.text), global = find(program.globals, program.global_count, token.text);
        const char *rest = at;
        while (isspace((unsigned char)*rest))
            rest++;
        if (local < 0 && global < 0 && *rest == '(') {
            call(CALL);
        } else if (local < 0 && global < 0) {
            bad("there is no such variable");
        } else {
            emit(local >= 0 ? LOAD : GET_GLOBAL, local >= 0 ? local : global);
            next();
        }
    } else {
        bad("an expression is expected");
    }
}

static void postfix(void)
{
    simple();
    for (;;) {
        if (take(".")) {
            char *name = need_name();
            emit(GET_FIELD, field_name(name));
            free(name);
        } else if (take("[")) {
            expression();
            need("]");
            emit(GET_ITEM, 0);
        } else {
            return;
        }
    }
}

static void unary(void)
{
    if (take("!")) {
        unary();
        emit(NOT, 0);
    } else if (take("-")) {
        emit(PUSH, (int64_t)number(0));
        unary();
        emit(SUB, 0);
    } else {
        postfix();
    }
}

static void binary(unsigned level)
{
    static const struct {
        const char *sign;
        unsigned level;
        enum op op;
    } operators[] = { { "==", 0, EQ }, { "!=", 0, NE }, { "<", 1, LT },  { "<=", 1, LE }, { ">", 1, GT }, { ">=", 1, GE },
                      { "+", 2, ADD }, { "-", 2, SUB }, { "*", 3, MUL }, { "/", 3, DIV }, { "%", 3, MOD } };
    if (level > 3) {
        unary();
        return;
    }
    binary(level + 1);
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < sizeof operators / sizeof *operators && !found; i++) {
            if (operators[i].level != level || !take(operators[i].sign))
                continue;
            binary(level + 1);
            emit(operators[i].op, 0);
            found = true;
        }
    }
}

/* && and || keep the value that decides. */
static void expression(void)
{
    binary(0);
    while (is("&&") || is("||")) {
        bool and = take("&&");
        if (!and)
            need("||");
        unsigned kept = new_local(strdup(""));
        emit(STORE, kept);
        emit(LOAD, kept);
        if (!and)
            emit(NOT, 0);
        unsigned jump = emit(JUMP_IF_NOT, 0);
        binary(0);
        emit(STORE, kept);
        now->code[jump].a = now->count;
        emit(LOAD, kept);
    }
}

/* ---- statements ---- */

static void assignment(void)
{
    expression();
    if (!take("=")) {
        emit(POP, 0);
        return;
    }
    struct instruction last = now->code[--now->count]; /* what would have read is to write */
    expression();
    switch (last.op) {
    case LOAD:
        emit(STORE, last.a);
        break;
    case GET_GLOBAL:
        emit(SET_GLOBAL, last.a);
        break;
    case GET_FIELD:
        emit(SET_FIELD, last.a);
        break;
    case GET_ITEM:
        emit(SET_ITEM, 0);
        break;
    default:
        bad("nothing can be assigned to this");
    }
}

static void if_statement(void)
{
    need("(");
    expression();
    need(")");
    unsigned otherwise = emit(JUMP_IF_NOT, 0);
    block();
    if (!take("else")) {
        now->code[otherwise].a = now->count;
        return;
    }
    unsigned end = emit(JUMP, 0);
    now->code[otherwise].a = now->count;
    if (take("if"))
        if_statement();
    else
        block();
    now->code[end].a = now->count;
}

static void statement(void)
{
    if (take("var")) {
        char *name = need_name();
        need("=");
        expression();
        emit(STORE, new_local(name));
    } else if (take("if")) {
        if_statement();
        return;
    } else if (take("while")) {
        unsigned begin = now->count;
        need("(");
        expression();
        need(")");
        unsigned out = emit(JUMP_IF_NOT, 0);
        block();
        emit(JUMP, begin);
        now->code[out].a = now->count;
        return;
    } else if (take("lock")) {
        need("(");
        expression();
        need(")");
        unsigned object = new_local(strdup(""));
        if (held_count == MAX_LOCKS)
            bad("too many locks");
        emit(STORE, object);
        emit(LOCK, object);
        held[held_count++] = object;
        block();
        held_count--;
        emit(UNLOCK, object);
        return;
    } else if (take("return")) {
        if (is(";"))
            emit(NIL, 0);
        else
            expression();
        for (unsigned i = held_count; i-- > 0;)
            emit(UNLOCK, held[i]);
        emit(RETURN, 0);
    } else {
        static const struct {
            const char *word;
            enum op op;
        } words[] = { { "print", PRINT }, { "join", JOIN }, { "reach", REACH }, { "await", AWAIT } };
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (take(words[i].word)) {
                expression();
                emit(words[i].op, 0);
                need(";");
                return;
            }
        if (take("yield"))
            emit(YIELD, 0);
        else if (take("collect"))
            emit(COLLECT, 0);
        else
            assignment();
    }
    need(";");
}

static void block(void)
{
    need("{");
    while (!is("}") && token.kind != END)
        statement();
    need("}");
}

/* ---- the program ---- */

static void class_definition(void)
{
    program.classes = realloc(program.classes, (program.class_count + 1) * sizeof *program.classes);
    struct class *class = &program.classes[program.class_count];
    *class = (struct class){ .name = need_name() };
    program.class_count++;
    memset(class->place_of, -1, sizeof class->place_of);
    unsigned plain[MAX_FIELDS], plain_count = 0;
    need("{");
    while (!take("}")) {
        bool is_volatile = take("volatile");
        char *name = need_name();
        unsigned field = field_name(name);
        free(name);
        need(";");
        if (class->words + plain_count + 2 > MAX_FIELDS || class->place_of[field] >= 0)
            bad("too many fields, or one twice");
        if (!is_volatile) {
            plain[plain_count++] = field;
            continue;
        }
        class->place_of[field] = (int8_t) class->words; /* pairs come first: objects and headers are multiples of 16 */
        class->is_volatile[class->words] = true;
        class->words += 2;
    }
    for (unsigned i = 0; i < plain_count; i++)
        class->place_of[plain[i]] = (int8_t) class->words++;
}

static void function_definition(void)
{
    char *name = need_name();
    unsigned function = function_named(name);
    now = &program.functions[function];
    if (now->code)
        bad("the function is defined twice");
    local_count = 0;
    need("(");
    while (!is(")")) {
        new_local(need_name());
        now->parameters++;
        if (!take(","))
            break;
    }
    need(")");
    block();
    emit(NIL, 0);
    emit(RETURN, 0);
    if (!strcmp(name, "main"))
        program.main = (unsigned)(now - program.functions) + 1;
    free(name);
}

static char *slurp(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        die("%s: cannot be read", path);
    char *text = calloc(1, 1 << 20);
    size_t size = fread(text, 1, (1 << 20) - 1, file);
    text[size] = 0;
    fclose(file);
    return text;
}

static bool accesses(enum op op)
{
    return op == GET_FIELD || op == SET_FIELD || op == GET_ITEM || op == SET_ITEM || op == GET_GLOBAL || op == SET_GLOBAL ||
           op == CALL || op == SPAWN || op == GO;
}

void compile(struct program *into, const char *path)
{
    const char *slash = strrchr(path, '/');
    into->file = strdup(slash ? slash + 1 : path);
    at = slurp(path);
    next();
    while (token.kind != END) {
        if (take("class")) {
            class_definition();
        } else if (take("global")) {
            if (into->global_count == MAX_NAMES)
                bad("too many globals");
            into->globals[into->global_count++] = need_name();
            need(";");
        } else {
            need("fn");
            function_definition();
        }
    }
    for (unsigned i = 0; i < into->function_count; i++) {
        struct function *function = &into->functions[i];
        if (!function->code)
            die("%s: function %s is called, and not defined", path, function->name);
        const struct instruction *last = NULL; /* one place for a line */
        for (unsigned j = 0; j < function->count; j++) {
            struct instruction *one = &function->code[j];
            if (!accesses(one->op))
                continue;
            one->place =
                last && last->line == one->line ? last->place : redflag_place(function->name, into->file, one->line);
            last = one;
        }
    }
    if (!into->main)
        die("%s: there is no function main", path);
}
