/* The interpreter. It is not instrumented: it comes and goes with the turns of green threads, while frames of the language stay; and what
 * it touches besides the program's memory is one thread's alone. */
#include <stdlib.h>

#include "vm.h"

static value compute(struct thread *self, enum op op, value a, value b)
{
    if (op == EQ || op == NE)
        return number((a == b) == (op == EQ));
    if (!is_number(a) || !is_number(b))
        wrong(self, "numbers are needed");
    int64_t x = as_number(a), y = as_number(b);
    if ((op == DIV || op == MOD) && !y)
        wrong(self, "division by zero");
    switch (op) {
    case ADD:
        return number(x + y);
    case SUB:
        return number(x - y);
    case MUL:
        return number(x * y);
    case DIV:
        return number(x / y);
    case MOD:
        return number(x % y);
    case LT:
        return number(x < y);
    case LE:
        return number(x <= y);
    case GT:
        return number(x > y);
    default:
        return number(x >= y);
    }
}

static bool is_true(value v)
{
    return v && v != number(0);
}

static const struct function *called(struct thread *self, const struct instruction *at)
{
    const struct function *function = &program.functions[at->a >> 8];
    if (function->parameters != (unsigned)(at->a & 0xff))
        wrong(self, "%s takes %u arguments, not %u", function->name, function->parameters, (unsigned)(at->a & 0xff));
    return function;
}

static void enter(struct thread *self, const struct instruction *at)
{
    const struct function *function = called(self, at);
    value *base = self->top - function->parameters;
    if (self->depth == MAX_DEPTH || base + function->locals + 32 > self->stack + MAX_STACK)
        wrong(self, "too many calls in one another");
    for (value *v = self->top; v < base + function->locals; v++)
        *v = 0;
    self->top = base + function->locals;
    self->frames[self->depth++] = (struct frame){ .function = function, .locals = base };
}

static void print(value v)
{
    if (is_number(v))
        printf("%lld\n", (long long)as_number(v));
    else
        puts(v ? "object" : "nil");
}

__attribute__((no_sanitize("thread"))) enum progress interpret(struct thread *self, unsigned budget)
{
    for (unsigned done = 0; !budget || done < budget; done++) {
        struct frame *frame = &self->frames[self->depth - 1];
        const struct instruction *at = &frame->function->code[frame->pc++];
        value *top = self->top, v;
        switch (at->op) {
        case PUSH:
            *self->top++ = (value)at->a;
            break;
        case NIL:
            *self->top++ = 0;
            break;
        case LOAD:
            *self->top++ = frame->locals[at->a];
            break;
        case STORE:
            frame->locals[at->a] = *--self->top;
            break;
        case GET_GLOBAL:
            *self->top++ = read_global(self, at);
            break;
        case SET_GLOBAL:
            write_global(self, at, *--self->top);
            break;
        case GET_FIELD:
            top[-1] = read_field(self, at, top[-1]);
            break;
        case SET_FIELD:
            write_field(self, at, top[-2], top[-1]);
            self->top -= 2;
            break;
        case GET_ITEM:
            top[-2] = read_item(self, at, top[-2], top[-1]);
            self->top--;
            break;
        case SET_ITEM:
            write_item(self, at, top[-3], top[-2], top[-1]);
            self->top -= 3;
            break;
        case NEW:
            v = (value)allocate(self, (uint32_t)at->a, program.classes[at->a].words, 0);
            *self->top++ = v;
            break;
        case ARRAY:
            if (!is_number(top[-1]) || as_number(top[-1]) < 0 || as_number(top[-1]) > 1 << 24)
                wrong(self, "an array cannot have this length");
            top[-1] = (value)allocate(self, ARRAY_CLASS, (unsigned)as_number(top[-1]), (uint32_t)as_number(top[-1]));
            break;
        case LENGTH:
            if (!top[-1] || is_number(top[-1]) || ((struct object *)top[-1])->class != ARRAY_CLASS)
                wrong(self, "this is no array");
            top[-1] = number(((struct object *)top[-1])->length);
            break;
        case NOT:
            top[-1] = number(!is_true(top[-1]));
            break;
        case JUMP:
            safepoint();
            frame->pc = (unsigned)at->a;
            break;
        case JUMP_IF_NOT:
            if (!is_true(*--self->top))
                frame->pc = (unsigned)at->a;
            break;
        case CALL:
            safepoint();
            redflag_call(at->place);
            enter(self, at);
            break;
        case SPAWN:
        case GO: {
            const struct function *function = called(self, at);
            self->top -= function->parameters;
            struct thread *child = start_thread(self, function, self->top, at->op == SPAWN);
            *self->top++ = number(child->number);
            break;
        }
        case JOIN: {
            struct thread *other = is_number(top[-1]) ? thread_at((unsigned)as_number(top[-1])) : NULL;
            if (!other || other == self || !other->number)
                wrong(self, "this is no thread that can be joined");
            if (!join_thread(self, other)) {
                frame->pc--;
                return YIELDS;
            }
            self->top--;
            break;
        }
        case RETURN:
            v = *--self->top;
            if (--self->depth == 0)
                return ENDS;
            redflag_return();
            self->top = frame->locals;
            *self->top++ = v;
            break;
        case POP:
            self->top--;
            break;
        case LOCK:
            if (!lock_object(self, &frame->locals[at->a], settings.with_clocks)) {
                frame->pc--;
                return YIELDS;
            }
            break;
        case UNLOCK:
            unlock_object(self, frame->locals[at->a], settings.with_clocks);
            break;
        case PRINT:
            print(*--self->top);
            break;
        case YIELD:
            safepoint();
            if (budget)
                return YIELDS;
            break;
        case COLLECT:
            collect();
            break;
        case REACH:
            reach(as_number(*--self->top));
            break;
        case AWAIT:
            if (!await(self, as_number(top[-1]))) {
                frame->pc--;
                return YIELDS;
            }
            self->top--;
            break;
        default:
            top[-2] = compute(self, at->op, top[-2], top[-1]);
            self->top--;
        }
    }
    return GOES_ON;
}
