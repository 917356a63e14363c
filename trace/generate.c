/* The "program" shape, and what both shapes share (see generate.h).
 *
 * A program's trace is made of stretches: a thread walks over neighbouring words of its own region, or reads a table that
 * the first thread wrote before it forked the others, or takes a lock and works on the few words that this lock guards. A
 * scheduler lets one thread run for 20 to 200 events. Every stretch belongs to one of a few small loops of the "code": its
 * sites. The defaults are after what real programs do (AccuLock, Tables III and IV; medians): two accesses in three repeat an
 * earlier one of their epoch, one event in a hundred is a lock operation, and one read in fifty or so shares what it reads.
 */
#include "trace/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"
#include "trace/random.h"
#include "trace/trace.h"

#define OWN_REGIONS UINT64_C(0x7f0000000000)
#define OWN_REGION_BYTES (UINT64_C(1) << 32)
#define TABLE UINT64_C(0x600000000000)   /* shared, read-mostly */
#define GUARDED UINT64_C(0x610000000000) /* shared, each word under its lock */
#define LOCKS UINT64_C(0x620000000000)
#define STRETCH 20u /* accesses, about */
#define WINDOW 4u   /* words that a loop comes back to */
#define LOOP 4u     /* sites of one loop */

struct walker {
    uint64_t addr, first, words; /* where it is; the region that it walks over, in words of 8 bytes */
    uint64_t home;               /* where it left its own region */
    uint64_t lock;
    uint32_t left; /* accesses in this stretch */
    uint32_t seen; /* words of this stretch so far, at most WINDOW */
    uint32_t site, turn;
    bool holds, own, writes;
};

struct program {
    const struct rf_generate_options *options;
    struct rf_random random;
    rf_emit_fn *emit;
    void *context;
    uint64_t number, length, held; /* length: 0 once no more events are wanted */
    struct walker *walkers;
    bool *lock_taken;
    uint64_t own_words, table_words, guarded_words; /* per thread; in all; per lock */
    uint32_t loops;
    uint64_t locality, reuse, sharing, race_rate, write_share, locked;
};

static void emit(struct program *program, uint32_t thread, enum rf_op op, uint64_t addr, uint32_t size, uint32_t site)
{
    struct rf_event event = { .addr = addr,
                              .thread = thread,
                              .site = site,
                              .number = (uint32_t)++program->number,
                              .size = size & 0xffffffu,
                              .op = (uint32_t)op & 0x7fu };
    if (!program->emit(program->context, program->number, &event))
        program->length = 0;
}

static uint32_t pick_loop(struct program *program)
{
    if (program->options->sites == 0)
        return 0;
    /* The smaller of two draws: a few loops are hot. */
    uint32_t a = rf_random_below(&program->random, program->loops), b = rf_random_below(&program->random, program->loops);
    return 1 + (a < b ? a : b) * LOOP;
}

static uint32_t site_of(const struct program *program, const struct walker *walker)
{
    uint32_t site = walker->site + walker->turn % LOOP;
    return site > program->options->sites ? program->options->sites : site;
}

static void begin_stretch(struct program *program, uint32_t thread)
{
    struct rf_random *random = &program->random;
    struct walker *walker = &program->walkers[thread];
    walker->left = STRETCH / 2 + rf_random_below(random, STRETCH);
    walker->site = pick_loop(program);
    walker->turn = 0;
    walker->seen = 0;
    walker->own = false;
    walker->writes = true;
    if (program->options->locks && rf_random_happens(random, program->locked)) {
        uint32_t lock = rf_random_below(random, program->options->locks);
        bool forgets = rf_random_happens(random, program->race_rate);
        if (forgets || !program->lock_taken[lock]) {
            walker->first = GUARDED + lock * program->guarded_words * 8;
            walker->words = program->guarded_words;
            walker->addr = walker->first + 8 * (uint64_t)rf_random_below(random, (uint32_t)walker->words);
            walker->lock = lock;
            if (!forgets) {
                walker->holds = program->lock_taken[lock] = true;
                program->held++;
                emit(program, thread, RF_ACQUIRE, LOCKS + 64 * (uint64_t)lock, 0, site_of(program, walker));
            }
            return;
        }
    }
    if (rf_random_happens(random, program->sharing)) {
        walker->first = TABLE;
        walker->words = program->table_words;
        walker->addr = TABLE + 8 * (uint64_t)rf_random_below(random, (uint32_t)walker->words);
        walker->writes = false;
        return;
    }
    walker->own = true;
    walker->first = OWN_REGIONS + thread * OWN_REGION_BYTES;
    walker->words = program->own_words;
    walker->addr = walker->home;
    if (!rf_random_happens(random, program->locality))
        walker->addr = walker->first + 8 * (uint64_t)rf_random_below(random, (uint32_t)walker->words);
}

static void end_stretch(struct program *program, uint32_t thread)
{
    struct walker *walker = &program->walkers[thread];
    if (walker->own)
        walker->home = walker->addr;
    if (!walker->holds)
        return;
    walker->holds = program->lock_taken[walker->lock] = false;
    program->held--;
    emit(program, thread, RF_RELEASE, LOCKS + 64 * walker->lock, 0, site_of(program, walker));
}

static void step(struct program *program, uint32_t thread)
{
    struct walker *walker = &program->walkers[thread];
    uint64_t bits = rf_random_next(&program->random);
    uint64_t addr = walker->addr;
    if (walker->seen && rf_random_happens(&program->random, program->reuse)) {
        /* One of the last words again, as loops do. */
        uint64_t back = 8 * (1 + (bits & (WINDOW - 1)) % walker->seen);
        addr = addr >= walker->first + back ? addr - back : walker->first;
    } else {
        walker->seen += walker->seen < WINDOW;
        walker->addr += 8;
        if (walker->addr >= walker->first + 8 * walker->words) {
            walker->addr = walker->first;
            walker->seen = 0;
        }
    }
    bool write = walker->writes && bits >> 32 < program->write_share;
    emit(program, thread, write ? RF_WRITE : RF_READ, addr, 8, site_of(program, walker));
    walker->turn++;
    walker->left--;
}

static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value < least ? least : value;
}

void rf_generate_program(const struct rf_generate_options *options, rf_emit_fn *emitter, void *context)
{
    uint32_t threads = (uint32_t)at_least(options->threads, 1);
    struct program program = { .options = options, .emit = emitter, .context = context, .length = options->length };
    rf_random_seed(&program.random, options->seed);
    program.walkers = rf_zeroed(threads, sizeof *program.walkers);
    program.lock_taken = rf_zeroed(options->locks, sizeof *program.lock_taken);
    /* Eight in ten variables belong to a thread, one to the table, one is under a lock. */
    program.own_words = at_least((uint64_t)options->variables * 8 / 10 / threads, 1);
    program.table_words = at_least(options->variables / 10, 1);
    program.guarded_words = options->locks ? at_least(options->variables / 10 / options->locks, 1) : 1;
    program.loops = options->sites / LOOP ? options->sites / LOOP : 1;
    program.locality = rf_chance(options->locality);
    program.reuse = rf_chance(options->reuse);
    program.sharing = rf_chance(options->sharing);
    program.race_rate = rf_chance(options->race_rate);
    program.write_share = rf_chance(options->write_share);
    program.locked = rf_chance(options->sync_share * (STRETCH + 2) / 2);
    for (uint32_t i = 0; i < threads; i++)
        program.walkers[i].home = OWN_REGIONS + i * OWN_REGION_BYTES;

    for (uint64_t i = 0; i < program.table_words && program.number < program.length / 16; i++)
        emit(&program, 0, RF_WRITE, TABLE + 8 * i, 8, options->sites ? 1 : 0);
    for (uint32_t i = 1; i < threads; i++)
        emit(&program, 0, RF_FORK, i, 0, options->sites ? 1 : 0);
    uint64_t closing = threads - 1;
    while (program.number + closing + program.held + 1 < program.length) {
        uint32_t thread = rf_random_below(&program.random, threads);
        uint64_t until = program.number + 20 + rf_random_below(&program.random, 181);
        while (program.number < until && program.number + closing + program.held + 1 < program.length) {
            struct walker *walker = &program.walkers[thread];
            if (walker->left == 0) {
                end_stretch(&program, thread);
                begin_stretch(&program, thread);
            } else {
                step(&program, thread);
            }
        }
    }
    if (program.number + closing + program.held < program.length) /* an acquire would have been too much */
        emit(&program, 0, RF_READ, program.walkers[0].home, 8, options->sites ? 1 : 0);
    for (uint32_t i = 0; i < threads; i++)
        end_stretch(&program, i);
    for (uint32_t i = 1; i < threads; i++)
        emit(&program, 0, RF_JOIN, i, 0, options->sites ? 1 : 0);
    free(program.walkers);
    free(program.lock_taken);
}

void rf_generate(const struct rf_generate_options *options, rf_emit_fn *emitter, void *context)
{
    if (options->shape == RF_SHAPE_PROGRAM)
        rf_generate_program(options, emitter, context);
    else
        rf_generate_random(options, emitter, context);
}

void rf_generate_defaults(struct rf_generate_options *options, enum rf_shape shape)
{
    bool program = shape == RF_SHAPE_PROGRAM;
    *options = (struct rf_generate_options){ .shape = shape,
                                             .seed = 1,
                                             .length = program ? 1000000 : 100,
                                             .threads = program ? 8 : 4,
                                             .locks = program ? 64 : 2,
                                             .variables = program ? 1u << 20 : 4,
                                             .sites = program ? 400 : 8,
                                             .locality = 0.9,
                                             .reuse = 0.7,
                                             .sharing = 0.03,
                                             .race_rate = 0,
                                             .write_share = 0.25,
                                             .sync_share = 0.01 };
    static const unsigned weights[RF_OP_COUNT] = {
        [RF_READ] = 30,        [RF_WRITE] = 20,       [RF_ACQUIRE] = 12,   [RF_RELEASE] = 14,      [RF_READ_ACQUIRE] = 3,
        [RF_READ_RELEASE] = 4, [RF_FORK] = 4,         [RF_JOIN] = 2,       [RF_VOLATILE_READ] = 3, [RF_VOLATILE_WRITE] = 3,
        [RF_SIGNAL] = 2,       [RF_WAIT] = 2,         [RF_BARRIER] = 2,    [RF_ALLOC] = 1,         [RF_FREE] = 1,
        [RF_COMMIT] = 2,       [RF_SAMPLE_BEGIN] = 0, [RF_SAMPLE_END] = 0, [RF_COPY] = 1,          [RF_IDENTITY] = 0
    };
    memcpy(options->weights, weights, sizeof weights);
}

void rf_generate_declare(const struct rf_generate_options *options, struct rf_writer *writer)
{
    char name[48];
    bool random = options->shape == RF_SHAPE_RANDOM;
    uint32_t threads = options->threads ? options->threads : 1;
    if (random && threads > RF_RANDOM_MAX)
        threads = RF_RANDOM_MAX;
    for (uint32_t i = 0; i < threads; i++) {
        snprintf(name, sizeof name, "T%u", i);
        rf_writer_thread(writer, i, name);
    }
    for (uint32_t i = 1; i <= options->sites; i++) {
        if (options->numeric_sites)
            snprintf(name, sizeof name, "%u", i);
        else
            snprintf(name, sizeof name, "f%u.c:%u", (i - 1) / 40, 10 + (i - 1) % 40);
        rf_writer_site(writer, i, name);
    }
    if (!random)
        return;
    uint32_t variables = options->variables < RF_RANDOM_MAX_VARIABLES ? options->variables : RF_RANDOM_MAX_VARIABLES;
    for (uint32_t i = 0; i < variables && !options->bytes; i++) {
        snprintf(name, sizeof name, "x%u", i);
        rf_writer_variable(writer, RF_NAMED_BASE + (uint64_t)RF_GRANULE * i, name);
    }
    /* Locks, volatiles, conditions, barriers: one name space, RF_RANDOM_MAX of each. */
    for (uint32_t i = 0; i < 4 * RF_RANDOM_MAX; i++) {
        snprintf(name, sizeof name, "%c%u", "lvcb"[i / RF_RANDOM_MAX], i % RF_RANDOM_MAX);
        rf_writer_object(writer, RF_NAMED_BASE + (uint64_t)RF_GRANULE * i, name);
    }
}
