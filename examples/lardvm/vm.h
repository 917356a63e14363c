/* lardvm: a small virtual machine that shows how a runtime tells redflag of the program that it runs (doc/embedding.md).
 *
 * 1. The machine's own code is one section of the runtime system (redflag_system_begin): what is the program's, it says. Only access.c
 *    touches fields, elements and globals on the program's behalf, and only lock.c and access.c synchronise for it.
 * 2. A thread of the language (struct thread) has its stack and frames outside the C stack: it can be stopped between any two
 *    instructions, and go on under another kernel thread. A native one has a kernel thread of its own, a green one what the pool gives.
 * 3. A kernel thread that runs a program counts as `running` (world.c) unless it waits for something. A collection begins when none
 *    runs but the one that wants it. So an address of an object is good from one safepoint to the next, and no longer: what must
 *    last is on a thread's stack, where the collector finds it.
 * 4. A volatile field is a pair of words, the value and a clock, replaced together by one compare-and-swap of 16 bytes (Wood, 4.3.3.2).
 */
#ifndef LARDVM_VM_H
#define LARDVM_VM_H

#include <pthread.h>
#include <redflag.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A number, shifted left by one, with the lowest bit set; or an address of an object; 0 is nil. */
typedef uint64_t value;

static inline value number(int64_t n)
{
    return (uint64_t)n << 1 | 1;
}

static inline bool is_number(value v)
{
    return v & 1;
}

static inline int64_t as_number(value v)
{
    return (int64_t)v >> 1;
}

/* ---- the program: compile.c ---- */

enum op {
    PUSH, /* constant a */
    NIL,
    LOAD, /* local a */
    STORE,
    GET_GLOBAL,
    SET_GLOBAL,
    GET_FIELD, /* name a, of the object on the stack */
    SET_FIELD,
    GET_ITEM,
    SET_ITEM,
    NEW, /* class a */
    ARRAY,
    LENGTH,
    ADD,
    SUB,
    MUL,
    DIV,
    MOD,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    NOT,
    JUMP, /* to a */
    JUMP_IF_NOT,
    CALL,  /* function a */
    SPAWN, /* function a, in a native thread */
    GO,    /* ... a green one */
    JOIN,
    RETURN,
    POP,
    LOCK, /* the object in local a */
    UNLOCK,
    PRINT,
    YIELD,
    COLLECT,
    REACH, /* order that the program does not have: `reach n` lets those go on that `await n` */
    AWAIT
};

struct instruction {
    enum op op;
    int64_t a;
    uint32_t line;
    const void *place; /* redflag_place() of instructions that access */
};

struct function {
    char *name;
    unsigned parameters, locals;
    struct instruction *code;
    unsigned count, cap;
};

#define MAX_FIELDS 32u
#define MAX_NAMES 256u

struct class
{
    char *name;
    unsigned words;               /* of its fields */
    int8_t place_of[MAX_NAMES];   /* name -> word, -1: none */
    bool is_volatile[MAX_FIELDS]; /* by word: this and the next are a pair */
};

struct program {
    char *file; /* its name, without directories */
    struct function *functions;
    unsigned function_count;
    struct class *classes;
    unsigned class_count;
    char *names[MAX_NAMES]; /* of fields */
    unsigned name_count;
    char *globals[MAX_NAMES];
    unsigned global_count;
    unsigned main;
};

void compile(struct program *program, const char *path); /* ends with a line for the user if it cannot */

/* ---- threads: world.c, lock.c ---- */

struct frame {
    const struct function *function;
    unsigned pc;
    value *locals;
};

struct thread {
    unsigned number;
    struct redflag_thread *identity;
    bool native, done, joined;
    value *stack, *top; /* top is the first free one */
    struct frame *frames;
    unsigned depth;
    struct thread *next; /* in the queue of the pool */
    unsigned worker;     /* that ran it last, counted from 1 */
    pthread_t kernel;    /* of a native one */
};

#define MAX_STACK 4096u
#define MAX_DEPTH 512u
#define MAX_THREADS 65536u

enum progress { GOES_ON, YIELDS, ENDS }; /* what a green thread has come to */

extern struct program program;
extern value globals[MAX_NAMES];

struct thread *thread_at(unsigned number);
unsigned thread_count(void);
struct thread *start_thread(struct thread *parent, const struct function *function, value *arguments, bool native);
bool join_thread(struct thread *self, struct thread *other); /* false: it has not ended, try again later (green) */
void run_program(unsigned workers);

void safepoint(void); /* waits while the world is stopped */
void stop_world(void);
void start_world(void);
void wait_begin(void); /* the kernel thread does not run from here */
void wait_end(void);   /* ... to here: addresses of objects may have changed */

void reach(int64_t stage);
bool await(struct thread *self, int64_t stage);

struct object;
/* false: another thread has it, try again later (green). The object is in a local variable, where the collector sees it. */
bool lock_object(struct thread *self, const value *local, bool with_clocks);
void unlock_object(struct thread *self, value object, bool with_clocks);
void free_monitor(struct object *object);

enum progress interpret(struct thread *self, unsigned budget); /* instructions; 0: to its end */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void wrong(const struct thread *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- memory: heap.c ---- */

struct monitor;

struct object {
    uint32_t class;  /* ARRAY_CLASS: an array, whose words are its items; FREE_CHUNK: none */
    uint32_t words;  /* of all of it, the header included; even */
    uint32_t id;     /* never used again for another */
    uint32_t length; /* of an array */
    struct monitor *monitor;
    struct object *forward; /* during a collection: where it is now, or itself: it is marked */
    value fields[];
};

#define ARRAY_CLASS UINT32_MAX
#define FREE_CHUNK (UINT32_MAX - 1)
#define HEADER_WORDS 4u

struct pair { /* of a volatile field */
    value value;
    struct redflag_clock *clock;
} __attribute__((aligned(16)));

enum collector { MARK_SWEEP, SEMISPACE };

void heap_begin(enum collector collector, size_t bytes);
struct object *allocate(struct thread *self, uint32_t class, unsigned words, uint32_t length);
void collect(void); /* the caller runs */
unsigned collections(void);
void retire_clock(struct redflag_clock *clock); /* freed when nobody can be reading it: at the next collection */

/* ---- accesses of the program: access.c ---- */

struct settings {
    bool with_clocks; /* locks keep clocks, as the paper's; else they are told as locks */
    bool wander;      /* a green thread never goes on under the kernel thread that ran it last */
    FILE *language;   /* the execution in the language's own terms, NULL: not wanted */
};
extern struct settings settings;

value read_field(struct thread *self, const struct instruction *at, value object);
void write_field(struct thread *self, const struct instruction *at, value object, value v);
value read_item(struct thread *self, const struct instruction *at, value array, value index);
void write_item(struct thread *self, const struct instruction *at, value array, value index, value v);
value read_global(struct thread *self, const struct instruction *at);
void write_global(struct thread *self, const struct instruction *at, value v);

/* A line of the language's trace; begin and end enclose the event and what is told to redflag, so that both have one order. */
void tell_begin(void);
void tell(const struct thread *self, const char *op, const char *argument, const struct instruction *at);
void tell_end(void);
const char *object_name(value object, char buffer[32]);

#endif
