/* The example of Table 3.1 (Wood, 3.2.7), row by row and cell by cell.
 *
 * Three threads; thread 0 runs on p0, thread 1 on p1. The table has MSI, the machine MESI: where nobody else has the line, the
 * table's S is an E here. A dash is metadata that is in no cache.
 */
#ifndef RF_TESTS_HARDWARE_TABLE_H
#define RF_TESTS_HARDWARE_TABLE_H

#include "hardware/radish.h"
#include "tests/memory.h"

#define NO_LINE (-1)

struct table_core {
    enum rf_mesi state;
    int permission, read, write; /* NO_LINE: there is no metadata */
    int clock[2];
};

struct table_row {
    const char *event;
    int reads[3], writes[3]; /* software */
    struct table_core cores[2];
    int status;
};

#define N RF_PERMIT_NONE
#define R RF_PERMIT_READ
#define W RF_PERMIT_WRITE
#define NO NO_LINE, NO_LINE, NO_LINE

static const struct table_row table_rows[] = {
    { "(initial)", { 7, 0, 0 }, { 2, 0, 0 }, { { RF_INVALID, NO, { 9, 4 } }, { RF_INVALID, NO, { 6, 5 } } }, RF_IN_SOFTWARE },
    { "p0 read", { 7, 0, 0 }, { 2, 0, 0 }, { { RF_EXCLUSIVE, W, 9, 2, { 9, 4 } }, { RF_INVALID, NO, { 6, 5 } } }, RF_EVERYTHING },
    { "p1 read", { 7, 0, 0 }, { 2, 0, 0 }, { { RF_SHARED, W, 9, 2, { 9, 4 } }, { RF_SHARED, R, 5, 0, { 6, 5 } } }, RF_EVERYTHING },
    { "p0 release", { 7, 0, 0 }, { 2, 0, 0 }, { { RF_SHARED, W, 9, 2, { 10, 4 } }, { RF_SHARED, R, 5, 0, { 6, 5 } } }, RF_EVERYTHING },
    { "p1 acquire", { 7, 0, 0 }, { 2, 0, 0 }, { { RF_SHARED, W, 9, 2, { 10, 4 } }, { RF_SHARED, R, 5, 0, { 9, 5 } } }, RF_EVERYTHING },
    { "p1 write", { 7, 0, 0 }, { 2, 0, 0 }, { { RF_INVALID, N, 0, 0, { 10, 4 } }, { RF_MODIFIED, W, 0, 5, { 9, 5 } } }, RF_EVERYTHING },
    { "p0 evict md", { 7, 0, 0 }, { 2, 0, 0 }, { { RF_INVALID, NO, { 10, 4 } }, { RF_MODIFIED, W, 0, 5, { 9, 5 } } }, RF_EVERYTHING },
    { "p1 evict md", { 0, 0, 0 }, { 0, 5, 0 }, { { RF_INVALID, NO, { 10, 4 } }, { RF_MODIFIED, NO, { 9, 5 } } }, RF_IN_SOFTWARE },
};
#define TABLE_ROWS (sizeof table_rows / sizeof *table_rows)

#undef N
#undef R
#undef W
#undef NO

struct table {
    struct rf_config config;
    struct rf_options options;
    struct rf_engine engine;
    struct rf_order order;
    struct rf_pages pages;
    struct rf_radish radish;
    uint64_t times[RF_MAX_CORES];
    struct rf_thread *threads[3];
    uint32_t races;
};

#define TABLE_X UINT64_C(0x1008)

static inline void table_race(void *context, uint64_t addr)
{
    (void)addr;
    ((struct table *)context)->races++;
}

static inline struct rf_access table_access(struct table *t, bool write)
{
    struct rf_access access = { .addr = TABLE_X, .size = 1, .write = write, .tracked = true };
    access.frame = rf_frame_of(&t->pages, TABLE_X);
    access.physical = rf_physical(&t->pages, access.frame, TABLE_X);
    return access;
}

static inline uint64_t table_number(struct table *t)
{
    return table_access(t, false).physical / t->radish.layout.cells;
}

static inline uint32_t table_cell(struct table *t)
{
    return (uint32_t)(table_access(t, false).physical % t->radish.layout.cells);
}

static inline struct rf_metadata *table_line(struct table *t, uint32_t core)
{
    struct rf_metadata *line = rf_lines_of(&t->radish, table_number(t));
    while (line && line->core != core)
        line = line->next;
    return line;
}

static inline int table_time(struct table *t, struct rf_metadata *line, enum rf_row row, uint32_t cell)
{
    return line ? (int)rf_time_of(&t->radish, line, rf_cell(&t->radish.layout, line, row, cell)) : NO_LINE;
}

static inline void table_begin(struct table *t, uint64_t broken)
{
    static const uint32_t clocks[3][3] = { { 9, 4, 0 }, { 6, 5, 0 }, { 0, 0, 1 } };
    memset(t, 0, sizeof *t);
    rf_config_defaults(&t->config);
    t->config.cores = 2;
    t->options = (struct rf_options){ .rate = -1, .transactions = RF_TXN_ALL }; /* times advance by one */
    t->engine = (struct rf_engine){ .memory = &test_memory, .options = &t->options };
    rf_order_init(&t->order, &t->engine);
    rf_pages_init(&t->pages, &t->config, &test_memory);
    rf_radish_init(&t->radish, &t->config, broken, &test_memory, &t->order, &t->pages, t->times);
    t->radish.race = table_race;
    t->radish.race_context = t;
    for (uint32_t i = 0; i < 3; i++)
        t->threads[i] = rf_order_thread(&t->order, i);
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t slot = 0; slot < 3; slot++)
            rf_clock_set(&t->threads[i]->clock, &test_memory, slot, clocks[i][slot]);
        rf_thread_refresh(&t->order, t->threads[i]);
    }
    rf_radish_switch(&t->radish, 0, t->threads[0]);
    rf_radish_switch(&t->radish, 1, t->threads[1]);
    struct rf_record *record = rf_software_make(&t->radish, table_number(t));
    struct rf_history *history = rf_software_history(&t->radish, record, 0);
    rf_history_set(history, &test_memory, t->radish.layout.cells, RF_READS, table_cell(t), 7);
    rf_history_set(history, &test_memory, t->radish.layout.cells, RF_WRITES, table_cell(t), 2);
}

static inline void table_step(struct table *t, size_t row)
{
    const struct rf_event release = { .op = RF_RELEASE, .addr = 1 }, acquire = { .op = RF_ACQUIRE, .addr = 1 };
    struct rf_access read = table_access(t, false), write = table_access(t, true);
    switch (row) {
    case 1:
    case 2:
        rf_radish_access(&t->radish, (uint32_t)row - 1, &read);
        break;
    case 3:
        rf_order_sync(&t->order, t->threads[0], &release);
        rf_radish_synchronised(&t->radish, 0);
        break;
    case 4:
        rf_order_sync(&t->order, t->threads[1], &acquire);
        rf_radish_synchronised(&t->radish, 1);
        break;
    case 5:
        rf_radish_access(&t->radish, 1, &write);
        break;
    case 6:
    case 7:
        rf_evict_line(&t->radish, table_line(t, (uint32_t)row - 6), true);
        rf_software_drain(&t->radish, 0);
        break;
    default:
        break;
    }
}

static inline enum rf_mesi table_state(struct table *t, uint32_t core)
{
    const struct rf_cache *l1 = &t->radish.machine.l1[core];
    size_t at = rf_cache_find(l1, RF_PRIVATE, rf_key_data(table_access(t, false).physical >> t->radish.machine.line_bits));
    return at == RF_NOWHERE ? RF_INVALID : (enum rf_mesi)*rf_cache_state(l1, RF_PRIVATE, at);
}

/* The column in which the row is wrong; NULL: it is right. */
static inline const char *table_wrong(struct table *t, const struct table_row *row)
{
    uint32_t cell = table_cell(t);
    int status = RF_IN_SOFTWARE;
    for (uint32_t slot = 0; slot < 3; slot++) {
        struct rf_record *record = rf_software_record(&t->radish, table_number(t));
        struct rf_history *history = rf_software_history(&t->radish, record, slot);
        if ((int)rf_history_get(history, t->radish.layout.cells, RF_READS, cell) != row->reads[slot])
            return "software reads";
        if ((int)rf_history_get(history, t->radish.layout.cells, RF_WRITES, cell) != row->writes[slot])
            return "software writes";
    }
    for (uint32_t core = 0; core < 2; core++) {
        const struct table_core *expected = &row->cores[core];
        struct rf_metadata *line = table_line(t, core);
        if (table_state(t, core) != expected->state)
            return "MSI";
        if ((line ? rf_cell(&t->radish.layout, line, RF_PERMISSIONS, cell) : NO_LINE) != expected->permission)
            return "perm";
        if (table_time(t, line, RF_READ_CLOCKS, cell) != expected->read)
            return "read";
        if (table_time(t, line, RF_WRITE_CLOCKS, cell) != expected->write)
            return "write";
        for (uint32_t other = 0; other < 2; other++)
            if ((int)t->radish.cores[core].clock[other] != expected->clock[other])
                return "VC";
        status = line ? rf_cell(&t->radish.layout, line, RF_STATUSES, cell) : status;
        if (line && status != row->status)
            return "in-hardware status";
    }
    return status == row->status ? NULL : "in-hardware status";
}

/* The whole table; false: row and column say where it is wrong. */
static inline bool table_holds(uint64_t broken, const char **row, const char **column)
{
    static struct table t;
    bool holds = true;
    table_begin(&t, broken);
    for (size_t i = 0; i < TABLE_ROWS && holds; i++) {
        table_step(&t, i);
        *row = table_rows[i].event;
        *column = table_wrong(&t, &table_rows[i]);
        holds = !*column;
    }
    if (holds && t.races) {
        *column = "races";
        holds = false;
    }
    rf_radish_free(&t.radish);
    rf_memory_end(&test_memory);
    return holds;
}

#endif
