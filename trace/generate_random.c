/* The "random" shape (see generate.h): at each turn a thread and an operation are drawn, and taken if a program could do
 * that now.
 *
 * The state below is what decides "could": who runs, who holds what, which variables are freed. Threads are bits of a word.
 */
#include <string.h>

#include "trace/generate.h"
#include "trace/random.h"

#define TRIES 200u /* turns without a possible event before the trace ends early */
#define BYTE_GRANULES UINT64_C(0x601000)

enum { LOCK, VOLATILE, CONDITION, BARRIER }; /* kinds of objects; each has RF_RANDOM_MAX names */

struct world {
    const struct rf_generate_options *options;
    struct rf_random random;
    rf_emit_fn *emit;
    void *context;
    uint64_t number, length; /* length: 0 once no more events are wanted */
    uint32_t threads, objects, variables;
    uint64_t alive;                    /* may act */
    uint64_t startable;                /* may be forked */
    uint64_t seen;                     /* was forked, or has acted: may be joined */
    uint32_t performer[RF_RANDOM_MAX]; /* of what is written for a thread */
    uint32_t owner[RF_RANDOM_MAX];     /* of a lock, plus one */
    uint32_t depth[RF_RANDOM_MAX];
    uint64_t readers[RF_RANDOM_MAX]; /* of a lock */
    uint64_t signalled;              /* conditions */
    bool sampling;
    unsigned char memory[RF_RANDOM_MAX_VARIABLES]; /* 0 never allocated, 1 live, 2 freed */
};

static uint64_t bit(uint32_t index)
{
    return UINT64_C(1) << index;
}

static uint64_t object(unsigned kind, uint32_t index)
{
    return RF_NAMED_BASE + (uint64_t)RF_GRANULE * (kind * RF_RANDOM_MAX + index);
}

static void emit(struct world *world, struct rf_event event, enum rf_op op, uint64_t addr, uint32_t size)
{
    event.op = (uint32_t)op & 0x7fu;
    event.addr = addr;
    event.size = size & 0xffffffu;
    event.number = (uint32_t)world->number;
    if (!world->emit(world->context, world->number, &event))
        world->length = 0;
}

static uint32_t draw(struct world *world, uint32_t bound)
{
    return rf_random_below(&world->random, bound);
}

/* One of the bits of a set, which is not empty. */
static uint32_t draw_bit(struct world *world, uint64_t set)
{
    uint32_t skip = draw(world, (uint32_t)__builtin_popcountll(set));
    while (skip--)
        set &= set - 1;
    return (uint32_t)__builtin_ctzll(set);
}

/* A variable that is not freed, and the bytes of it to touch. */
static bool draw_place(struct world *world, uint32_t *variable, uint64_t *addr, uint32_t *size)
{
    *variable = draw(world, world->variables);
    if (world->memory[*variable] == 2)
        return false;
    *addr = RF_NAMED_BASE + (uint64_t)RF_GRANULE * *variable;
    *size = RF_GRANULE;
    if (world->options->bytes) {
        *size = 1u << draw(world, 4);
        *addr = BYTE_GRANULES + (uint64_t)RF_GRANULE * *variable + draw(world, RF_GRANULE / *size) * *size;
    }
    return true;
}

static uint64_t whole(const struct world *world, uint32_t variable)
{
    return (world->options->bytes ? BYTE_GRANULES : RF_NAMED_BASE) + (uint64_t)RF_GRANULE * variable;
}

static uint64_t holding(const struct world *world, uint32_t thread)
{
    uint64_t locks = 0;
    for (uint32_t i = 0; i < world->objects; i++)
        if (world->owner[i] == thread + 1 || (world->readers[i] & bit(thread)))
            locks |= bit(i);
    return locks;
}

static bool try_lock(struct world *world, struct rf_event event, enum rf_op op, uint32_t self)
{
    uint32_t lock = draw(world, world->objects);
    bool free_to_write = world->owner[lock] == 0 && world->readers[lock] == 0;
    switch (op) {
    case RF_ACQUIRE:
        if (!free_to_write && (world->owner[lock] != self + 1 || world->depth[lock] >= 3))
            return false;
        world->owner[lock] = self + 1;
        world->depth[lock]++;
        break;
    case RF_READ_ACQUIRE:
        if (world->owner[lock] || (world->readers[lock] & bit(self)))
            return false;
        world->readers[lock] |= bit(self);
        break;
    case RF_RELEASE: {
        uint64_t mine = 0;
        for (uint32_t i = 0; i < world->objects; i++)
            mine |= world->owner[i] == self + 1 ? bit(i) : 0;
        if (!mine)
            return false;
        lock = draw_bit(world, mine);
        if (--world->depth[lock] == 0)
            world->owner[lock] = 0;
        break;
    }
    default: {
        uint64_t mine = 0;
        for (uint32_t i = 0; i < world->objects; i++)
            mine |= world->readers[i] & bit(self) ? bit(i) : 0;
        if (!mine)
            return false;
        lock = draw_bit(world, mine);
        world->readers[lock] &= ~bit(self);
    }
    }
    emit(world, event, op, object(LOCK, lock), 0);
    return true;
}

static bool try_memory(struct world *world, struct rf_event event, enum rf_op op)
{
    uint32_t variable = draw(world, world->variables), other = draw(world, world->variables);
    if (op == RF_COPY) {
        if (variable == other || world->memory[variable] == 2 || world->memory[other] == 2)
            return false;
        emit(world, event, RF_COPY, whole(world, variable), RF_GRANULE);
        emit(world, event, RF_COPY_TO, whole(world, other), RF_GRANULE);
        return true;
    }
    /* A block that is live cannot be handed out again, and only one that is live can be freed. */
    if ((op == RF_ALLOC) == (world->memory[variable] == 1))
        return false;
    world->memory[variable] = op == RF_ALLOC ? 1 : 2;
    emit(world, event, op, whole(world, variable), RF_GRANULE);
    return true;
}

static bool try_commit(struct world *world, struct rf_event event)
{
    struct {
        uint64_t addr;
        uint32_t size;
    } parts[5];
    uint32_t count = draw(world, 6), reads = count ? draw(world, count + 1) : 0, variable;
    for (uint32_t i = 0; i < count; i++)
        if (!draw_place(world, &variable, &parts[i].addr, &parts[i].size))
            return false;
    emit(world, event, RF_COMMIT, 0, count);
    for (uint32_t i = 0; i < count; i++)
        emit(world, event, i < reads ? RF_COMMIT_READ : RF_COMMIT_WRITE, parts[i].addr, parts[i].size);
    return true;
}

static bool try_thread(struct world *world, struct rf_event event, enum rf_op op, uint32_t self)
{
    uint64_t set = op == RF_FORK ? world->startable : world->alive & ~bit(self);
    if (op == RF_JOIN)
        set &= world->seen;
    if (!set)
        return false;
    uint32_t other = draw_bit(world, set);
    if (op == RF_FORK) {
        world->startable &= ~bit(other);
        world->alive |= bit(other);
        world->seen |= bit(other);
    } else if (op == RF_JOIN) {
        if (holding(world, other))
            return false;
        world->alive &= ~bit(other);
    } else {
        world->performer[event.thread] = other;
    }
    emit(world, event, op, other, 0);
    return true;
}

static bool try_event(struct world *world, struct rf_event event, enum rf_op op, uint32_t self)
{
    uint32_t which = draw(world, world->objects), variable, size;
    uint64_t addr;
    switch (op) {
    case RF_READ:
    case RF_WRITE:
        if (!draw_place(world, &variable, &addr, &size))
            return false;
        emit(world, event, op, addr, size);
        return true;
    case RF_ACQUIRE:
    case RF_RELEASE:
    case RF_READ_ACQUIRE:
    case RF_READ_RELEASE:
        return try_lock(world, event, op, self);
    case RF_FORK:
    case RF_JOIN:
    case RF_IDENTITY:
        return try_thread(world, event, op, self);
    case RF_VOLATILE_READ:
    case RF_VOLATILE_WRITE:
        emit(world, event, op, object(VOLATILE, which), 0);
        return true;
    case RF_SIGNAL:
        world->signalled |= bit(which);
        emit(world, event, op, object(CONDITION, which), 0);
        return true;
    case RF_WAIT:
        if (!(world->signalled & bit(which)))
            return false;
        emit(world, event, op, object(CONDITION, which), 0);
        return true;
    case RF_BARRIER:
        emit(world, event, op, object(BARRIER, which), 0);
        return true;
    case RF_ALLOC:
    case RF_FREE:
    case RF_COPY:
        return try_memory(world, event, op);
    case RF_COMMIT:
        return try_commit(world, event);
    case RF_SAMPLE_BEGIN:
    case RF_SAMPLE_END:
        if (world->sampling == (op == RF_SAMPLE_BEGIN))
            return false;
        world->sampling = !world->sampling;
        emit(world, event, op, 0, 0);
        return true;
    default:
        return false;
    }
}

static uint32_t clamp(uint32_t value, uint32_t most)
{
    return value == 0 ? 1 : value > most ? most : value;
}

void rf_generate_random(const struct rf_generate_options *options, rf_emit_fn *emitter, void *context)
{
    struct world world = { .options = options, .emit = emitter, .context = context, .length = options->length };
    rf_random_seed(&world.random, options->seed);
    world.threads = clamp(options->threads, RF_RANDOM_MAX);
    world.objects = clamp(options->locks, RF_RANDOM_MAX);
    world.variables = clamp(options->variables, RF_RANDOM_MAX_VARIABLES);
    unsigned total = 0;
    for (int op = 0; op < RF_OP_COUNT; op++)
        total += options->weights[op];
    if (total == 0)
        return;
    for (uint32_t i = 0; i < world.threads; i++) {
        world.performer[i] = i;
        /* Some threads begin by themselves, the others must be forked first. */
        if (i == 0 || options->weights[RF_FORK] == 0 || (rf_random_next(&world.random) >> 62) == 0)
            world.alive |= bit(i);
        else
            world.startable |= bit(i);
    }
    unsigned failures = 0;
    while (world.number < world.length && world.alive && failures < TRIES) {
        uint32_t thread = draw_bit(&world, world.alive), pick = draw(&world, total);
        int op = 0;
        while (pick >= options->weights[op])
            pick -= options->weights[op++];
        uint32_t self = world.performer[thread];
        struct rf_event event = { .thread = thread, .site = options->sites ? 1 + draw(&world, options->sites) : 0 };
        world.number++;
        if ((world.alive & bit(self)) && try_event(&world, event, (enum rf_op)op, self)) {
            failures = 0;
            if (op != RF_IDENTITY)
                world.seen |= bit(self);
        } else {
            world.number--;
            failures++;
        }
    }
}
