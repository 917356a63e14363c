/* Traces of small parallel kernels for `redflag simulate`, and the plots of bench/radish.sh.
 *
 *   radish_kernels list                       the names of the kernels
 *   radish_kernels make NAME OUT.rft          the trace of one, with eight threads
 *   radish_kernels plot TITLE <lines          "name slowdown permission hardware software" -> SVG of the shares
 *
 * 1. A kernel does what the program of its name does, access by access, at addresses as an allocator and a compiler would place
 *    things; nothing is drawn at random but what the program itself would find in its data.
 * 2. Threads take turns in short pieces, as cores of equal speed would. A critical section is never torn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "hardware/plot.h"
#include "trace/random.h"
#include "trace/trace.h"

#define THREADS 8u
#define HEAP UINT64_C(0x7f0000000000)
#define LOCKS UINT64_C(0x7e0000000000)
#define STACKS UINT64_C(0x7d0000000000)

static struct rf_writer *writer;
static struct rf_random dice;
static uint64_t number;

static void emit(uint32_t thread, enum rf_op op, uint64_t addr, uint32_t size, uint32_t site)
{
    struct rf_event event = { .addr = addr, .thread = thread, .site = site, .size = size & 0xffffff, .op = op & 0x7f };
    number++;
    event.number = (uint32_t)number;
    rf_writer_event(writer, number, &event);
}

static void rd(uint32_t thread, uint64_t addr, uint32_t size)
{
    emit(thread, RF_READ, addr, size, 1);
}

static void wr(uint32_t thread, uint64_t addr, uint32_t size)
{
    emit(thread, RF_WRITE, addr, size, 2);
}

static void lock(uint32_t thread, uint64_t which)
{
    emit(thread, RF_ACQUIRE, LOCKS + 64 * which, 0, 3);
}

static void unlock(uint32_t thread, uint64_t which)
{
    emit(thread, RF_RELEASE, LOCKS + 64 * which, 0, 3);
}

static void barrier(void)
{
    for (uint32_t t = 0; t < THREADS; t++)
        emit(t, RF_BARRIER, LOCKS, 0, 4);
}

/* The first thread fills an array, then forks the others and works like them. */
static void fill(uint64_t addr, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += 8)
        wr(0, addr + at, 8);
}

static void fork_all(void)
{
    for (uint32_t t = 1; t < THREADS; t++)
        emit(0, RF_FORK, t, 0, 5);
}

static void join_all(void)
{
    for (uint32_t t = 1; t < THREADS; t++)
        emit(0, RF_JOIN, t, 0, 5);
}

/* Option pricing: each thread has its own slice, read and written again and again. */
static void options(void)
{
    uint64_t slice = 4096;
    fill(HEAP, slice * 40 * THREADS / 8);
    fork_all();
    for (int round = 0; round < 40; round++)
        for (uint64_t i = 0; i < slice / 8; i++)
            for (uint32_t t = 0; t < THREADS; t++) {
                uint64_t option = HEAP + t * slice * 5 + i * 40, price = HEAP + 0x1000000 + (t * slice / 8 + i) * 8;
                for (uint64_t field = 0; field < 40; field += 8)
                    rd(t, option + field, 8);
                for (int spill = 0; spill < 6; spill++) {
                    wr(t, STACKS + t * (UINT64_C(1) << 23) + 8 * (uint64_t)spill, 8);
                    rd(t, STACKS + t * (UINT64_C(1) << 23) + 8 * (uint64_t)spill, 8);
                }
                wr(t, price, 8);
            }
    join_all();
}

/* Matrices of 128 x 128 doubles: two that all read, one whose rows are shared out. */
static void matrix(void)
{
    uint64_t n = 128, a = HEAP, b = a + n * n * 8, c = b + n * n * 8;
    fill(a, 2 * n * n * 8);
    fork_all();
    for (uint64_t row = 0; row < n; row += THREADS)
        for (uint64_t column = 0; column < n; column++)
            for (uint32_t t = 0; t < THREADS; t++) {
                uint64_t mine = row + t;
                for (uint64_t k = 0; k < n; k++) {
                    rd(t, a + (mine * n + k) * 8, 8);
                    rd(t, b + (k * n + column) * 8, 8);
                }
                wr(t, c + (mine * n + column) * 8, 8);
            }
    join_all();
}

/* Two grids of 256 x 256 floats, rows shared out in bands, a barrier after each step. */
static void stencil(void)
{
    uint64_t n = 256, grids[2] = { HEAP, HEAP + 256 * 256 * 4 + 4096 };
    fill(grids[0], 2 * (n * n * 4 + 4096));
    fork_all();
    for (int step = 0; step < 16; step++) {
        uint64_t from = grids[step % 2], to = grids[1 - step % 2], band = n / THREADS;
        for (uint64_t line = 0; line < band; line++)
            for (uint32_t t = 0; t < THREADS; t++) {
                uint64_t y = t * band + line;
                for (uint64_t x = 1; y && y < n - 1 && x < n - 1; x++) {
                    rd(t, from + ((y - 1) * n + x) * 4, 4);
                    rd(t, from + (y * n + x - 1) * 4, 4);
                    rd(t, from + (y * n + x + 1) * 4, 4);
                    rd(t, from + ((y + 1) * n + x) * 4, 4);
                    wr(t, to + (y * n + x) * 4, 4);
                }
            }
        barrier();
    }
    join_all();
}

/* Bytes counted into 256 bins of their own, and added up under one lock at the end of each block. */
static void histogram(void)
{
    uint64_t bytes = 131072;
    fill(HEAP, bytes * THREADS);
    fork_all();
    for (uint64_t block = 0; block < bytes; block += 4096) {
        for (uint64_t i = 0; i < 4096; i++)
            for (uint32_t t = 0; t < THREADS; t++) {
                uint64_t bin = STACKS + t * (UINT64_C(1) << 23) + 8 * rf_random_below(&dice, 256);
                rd(t, HEAP + t * bytes + block + i, 1);
                rd(t, bin, 8);
                wr(t, bin, 8);
            }
        for (uint32_t t = 0; t < THREADS; t++) {
            lock(t, 1);
            for (uint64_t bin = 0; bin < 256; bin++) {
                rd(t, STACKS + t * (UINT64_C(1) << 23) + 8 * bin, 8);
                rd(t, HEAP + 0x1000000 + 8 * bin, 8);
                wr(t, HEAP + 0x1000000 + 8 * bin, 8);
            }
            unlock(t, 1);
        }
    }
    join_all();
}

/* Four threads fill messages of 256 bytes, four empty them: a ring of 64 places under one lock. */
static void queue(void)
{
    uint64_t ring = HEAP, messages = HEAP + 65536;
    fork_all();
    for (uint64_t i = 0; i < 10000; i++)
        for (uint32_t pair = 0; pair < THREADS / 2; pair++)
            for (uint32_t end = 0; end < 2; end++) {
                uint32_t t = pair * 2 + end;
                uint64_t message = messages + ((i * 4 + pair) % 64) * 256;
                for (uint64_t at = 0; at < 256 && !end; at += 8)
                    wr(t, message + at, 8);
                lock(t, 2);
                rd(t, ring, 8);
                wr(t, ring, 8);
                (end ? rd : wr)(t, ring + 64 + 8 * ((i * 4 + pair) % 64), 8);
                unlock(t, 2);
                for (uint64_t at = 0; at < 256 && end; at += 8)
                    rd(t, message + at, 8);
            }
    join_all();
}

/* Merge sort: each thread sorts its part by merging runs, then half of the threads merge pairs, and so on, between barriers. */
static void merge_sort(void)
{
    uint64_t part = 8192, data = HEAP, other = HEAP + 0x1000000;
    fill(data, part * THREADS * 4);
    fork_all();
    for (uint64_t run = 4; run < part * THREADS; run *= 2) {
        uint32_t active = run < part ? THREADS : (uint32_t)(part * THREADS / (2 * run));
        uint64_t share = run < part ? part : 2 * run;
        for (uint64_t i = 0; i < share; i++)
            for (uint32_t t = 0; t < active; t++) {
                uint64_t first = t * share, at = i / (2 * run) * 2 * run, in = i % (2 * run);
                rd(t, data + (first + at + in / 2) * 4, 4);
                rd(t, data + (first + at + run + in / 2) * 4, 4);
                wr(t, other + (first + i) * 4, 4);
            }
        barrier();
        uint64_t swap = data;
        data = other;
        other = swap;
    }
    join_all();
}

/* A table of 8192 entries of 64 bytes under 64 read-write locks; one access in twenty writes. */
static void table(void)
{
    fill(HEAP, 8192 * 64);
    fork_all();
    for (int i = 0; i < 40000; i++)
        for (uint32_t t = 0; t < THREADS; t++) {
            uint64_t entry = rf_random_below(&dice, 8192), which = 8 + entry % 64;
            bool write = rf_random_below(&dice, 20) == 0;
            emit(t, write ? RF_ACQUIRE : RF_READ_ACQUIRE, LOCKS + 64 * which, 0, 3);
            for (uint64_t field = 0; field < 64; field += 8)
                (write && field ? wr : rd)(t, HEAP + entry * 64 + field, 8);
            emit(t, write ? RF_RELEASE : RF_READ_RELEASE, LOCKS + 64 * which, 0, 3);
        }
    join_all();
}

/* Particles in 1024 cells, a lock for each: what moves into a neighbour's cell is added there. */
static void particles(void)
{
    fill(HEAP, 1024 * 128);
    fork_all();
    for (int step = 0; step < 12; step++) {
        for (uint64_t i = 0; i < 128; i++)
            for (uint32_t t = 0; t < THREADS; t++)
                for (uint64_t p = 0; p < 8; p++) {
                    uint64_t cell = t * 128 + i, to = (cell + rf_random_below(&dice, 3) + 1023) % 1024;
                    for (int force = 0; force < 24; force++)
                        rd(t, STACKS + t * (UINT64_C(1) << 23) + 8 * (uint64_t)force, 8);
                    lock(t, 100 + to);
                    for (uint64_t field = 0; field < 6; field++) {
                        rd(t, HEAP + to * 128 + p * 12 % 96 + field * 4, 4);
                        wr(t, HEAP + to * 128 + p * 12 % 96 + field * 4, 4);
                    }
                    unlock(t, 100 + to);
                }
        barrier();
    }
    join_all();
}

/* A counter for each thread, all in one line: bytes do not race, the line goes from core to core. */
static void counters(void)
{
    fork_all();
    for (int i = 0; i < 150000; i++)
        for (uint32_t t = 0; t < THREADS; t++) {
            rd(t, HEAP + 8 * t, 8);
            wr(t, HEAP + 8 * t, 8);
        }
    join_all();
}

/* A breadth-first search whose threads mark nodes without a lock: the races are real. */
static void search(void)
{
    uint64_t nodes = 8192;
    fill(HEAP, nodes * 64);
    fork_all();
    for (int level = 0; level < 32; level++) {
        for (uint64_t i = 0; i < nodes / THREADS; i++)
            for (uint32_t t = 0; t < THREADS; t++) {
                uint64_t node = t * nodes / THREADS + i;
                for (uint64_t edge = 0; edge < 4; edge++) {
                    uint64_t next = (node + (1u << (2 * edge)) + 1) % nodes;
                    rd(t, HEAP + node * 64 + 16 + edge * 8, 8);
                    rd(t, HEAP + next * 64, 4);
                    if ((next ^ (uint64_t)level) % 8 == 0)
                        wr(t, HEAP + next * 64, 4);
                }
            }
        barrier();
    }
    join_all();
}

static const struct kernel {
    const char *name;
    void (*run)(void);
} kernels[] = { { "options", options },       { "matrix", matrix }, { "stencil", stencil },     { "histogram", histogram },
                { "merge-sort", merge_sort }, { "queue", queue },   { "table", table },         { "particles", particles },
                { "counters", counters },     { "search", search } };
#define KERNELS (sizeof kernels / sizeof *kernels)

static int make(const char *name, const char *path)
{
    static const char *const sites[] = { "", "load", "store", "lock", "barrier", "thread" };
    char *error = NULL, thread[16];
    for (size_t i = 0; i < KERNELS; i++) {
        if (strcmp(kernels[i].name, name) != 0)
            continue;
        rf_random_seed(&dice, 1);
        writer = rf_writer_open(path, RF_FORMAT_RFT, &error);
        if (!writer) {
            fprintf(stderr, "radish_kernels: %s\n", error);
            return 2;
        }
        for (uint32_t t = 0; t < THREADS; t++) {
            snprintf(thread, sizeof thread, "T%u", t);
            rf_writer_thread(writer, t, thread);
        }
        for (uint32_t site = 1; site < sizeof sites / sizeof *sites; site++)
            rf_writer_site(writer, site, sites[site]);
        kernels[i].run();
        if (rf_writer_close(writer, &error))
            return 0;
        fprintf(stderr, "radish_kernels: %s\n", error);
        return 2;
    }
    fprintf(stderr, "radish_kernels: no kernel '%s'\n", name);
    return 2;
}

static int plot(const char *title)
{
    static char names[64][64];
    static const char *const series[] = { "permission", "hardware", "software" };
    const char *places[64];
    double shares[3][64], packed[3 * 64], slowdown;
    size_t count = 0;
    while (count < 64 && scanf("%63s %lf %lf %lf %lf", names[count], &slowdown, &shares[0][count], &shares[1][count],
                               &shares[2][count]) == 5) {
        places[count] = names[count];
        count++;
    }
    for (size_t s = 0; s < 3; s++)
        memcpy(packed + s * count, shares[s], count * sizeof(double));
    struct rf_plot p = { title, "", "share of the checks", places, count, series, 3, packed };
    rf_plot_shares(&p, stdout);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "list")) {
        for (size_t i = 0; i < KERNELS; i++)
            puts(kernels[i].name);
        return 0;
    }
    if (argc == 4 && !strcmp(argv[1], "make"))
        return make(argv[2], argv[3]);
    if (argc == 3 && !strcmp(argv[1], "plot"))
        return plot(argv[2]);
    fputs("usage: radish_kernels list | make NAME OUT.rft | plot TITLE\n", stderr);
    return 2;
}
