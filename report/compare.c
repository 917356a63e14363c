/* Detectors side by side: a table, and a matrix of how many racy variables each reports that another does not. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "report/report.h"

struct column {
    uint64_t *variables; /* racy ones, sorted, distinct */
    size_t variable_count;
    size_t sites;
    double speed; /* events a second */
    double bytes; /* a variable */
};

struct comparison {
    struct column *columns;
    size_t *only; /* [a * count + b]: racy variables of a that b does not report */
    size_t count;
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static size_t distinct(uint64_t *values, size_t count)
{
    size_t kept = 0;
    if (count)
        qsort(values, count, sizeof *values, by_value);
    for (size_t i = 0; i < count; i++)
        if (!kept || values[kept - 1] != values[i])
            values[kept++] = values[i];
    return kept;
}

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fputs("redflag: out of memory: too many races to compare\n", stderr);
        exit(2);
    }
    return memory;
}

static void fill(struct column *column, const struct rf_report *report, const struct rf_result *result)
{
    const struct rf_races *races = &result->races;
    uint64_t *sites = zeroed(2 * races->count, sizeof *sites);
    size_t site_count = 0;
    column->variables = zeroed(races->count, sizeof *column->variables);
    for (size_t i = 0; i < races->count; i++) {
        const struct rf_race *race = &races->list[i];
        column->variables[i] = race->addr / RF_GRANULE; /* detectors may split a granule differently */
        if (race->first.site)
            sites[site_count++] = race->first.site;
        if (race->second.site)
            sites[site_count++] = race->second.site;
    }
    column->variable_count = distinct(column->variables, races->count);
    column->sites = distinct(sites, site_count);
    column->speed = result->seconds > 0 ? (double)report->events / result->seconds : 0;
    free(sites);
}

static struct comparison compare(const struct rf_report *report)
{
    struct comparison comparison = { .count = report->result_count };
    uint64_t variables = 0;
    comparison.columns = zeroed(comparison.count, sizeof *comparison.columns);
    comparison.only = zeroed(comparison.count * comparison.count, sizeof *comparison.only);
    for (size_t i = 0; i < comparison.count; i++) {
        fill(&comparison.columns[i], report, &report->results[i]);
        /* A detector that forgets (pacer) has fewer variables at the end than the execution had. */
        variables = report->results[i].variables > variables ? report->results[i].variables : variables;
    }
    for (size_t a = 0; a < comparison.count; a++) {
        const struct column *x = &comparison.columns[a];
        comparison.columns[a].bytes = variables ? (double)report->results[a].variable_bytes / (double)variables : 0;
        for (size_t b = 0; b < comparison.count; b++) {
            const struct column *y = &comparison.columns[b];
            for (size_t i = 0; i < x->variable_count; i++)
                if (!bsearch(&x->variables[i], y->variables, y->variable_count, sizeof *y->variables, by_value))
                    comparison.only[a * comparison.count + b]++;
        }
    }
    return comparison;
}

static void end(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++)
        free(comparison->columns[i].variables);
    free(comparison->columns);
    free(comparison->only);
}

static const char *scaled(double value, char buffer[16])
{
    if (value >= 1e6)
        snprintf(buffer, 16, "%.1fM", value * 1e-6);
    else if (value >= 1e3)
        snprintf(buffer, 16, "%.1fk", value * 1e-3);
    else
        snprintf(buffer, 16, "%.0f", value);
    return buffer;
}

static char letter(size_t column)
{
    return (char)(column < 26 ? 'a' + (int)column : '?');
}

/* Text and Markdown are one table with other borders. */
struct borders {
    const char *left, *between, *right;
    bool rule;
};

static void rule(FILE *out, const struct borders *borders, size_t columns)
{
    if (!borders->rule)
        return;
    fputs("|---|", out);
    for (size_t i = 1; i < columns; i++)
        fputs("---:|", out);
    fputc('\n', out);
}

static void table(FILE *out, const struct rf_report *report, const struct borders *borders)
{
    struct comparison comparison = compare(report);
    char speed[16];
    fprintf(out, "%s%-12s%s%8s%s%10s%s%7s%s%10s%s%15s%s\n", borders->left, "detector", borders->between, "races",
            borders->between, "variables", borders->between, "sites", borders->between, "events/s", borders->between,
            "bytes/variable", borders->right);
    rule(out, borders, 6);
    for (size_t i = 0; i < comparison.count; i++) {
        const struct column *column = &comparison.columns[i];
        fprintf(out, "%s%-12s%s%8zu%s%10zu%s%7zu%s%10s%s%15.1f%s\n", borders->left, report->results[i].detector,
                borders->between, report->results[i].races.count, borders->between, column->variable_count, borders->between,
                column->sites, borders->between, scaled(column->speed, speed), borders->between, column->bytes,
                borders->right);
    }
    /* Letters stand for the columns: fifteen names would not fit a terminal. */
    fputs("\nRacy variables that the row reports and the column does not:\n\n", out);
    fprintf(out, "%s%-12s", borders->left, "");
    for (size_t i = 0; i < comparison.count; i++)
        fprintf(out, "%s%4c", borders->between, letter(i));
    fprintf(out, "%s\n", borders->right);
    rule(out, borders, comparison.count + 1);
    for (size_t a = 0; a < comparison.count; a++) {
        fprintf(out, "%s%c %-10s", borders->left, letter(a), report->results[a].detector);
        for (size_t b = 0; b < comparison.count; b++) {
            char cell[16] = ".";
            if (comparison.only[a * comparison.count + b])
                scaled((double)comparison.only[a * comparison.count + b], cell);
            fprintf(out, "%s%4s", borders->between, a == b ? "" : cell);
        }
        fprintf(out, "%s\n", borders->right);
    }
    end(&comparison);
}

static void heading(FILE *out, const struct rf_report *report, const char *mark)
{
    fprintf(out, "%s%s: %" PRIu64 " events, %" PRIu32 " threads%s\n\n", mark, report->path, report->events, report->threads,
            report->truncated ? " (truncated: only the part before the damage)" : "");
}

void rf_compare_text(FILE *out, const struct rf_report *report)
{
    heading(out, report, "");
    table(out, report, &(struct borders){ "", " ", "", false });
}

void rf_compare_markdown(FILE *out, const struct rf_report *report)
{
    heading(out, report, "## ");
    table(out, report, &(struct borders){ "| ", " | ", " |", true });
}

void rf_compare_json(FILE *out, const struct rf_report *report)
{
    struct comparison comparison = compare(report);
    struct rf_json json = { .out = out, .first = true };
    rf_json_open(&json, NULL, '{');
    rf_json_open(&json, "trace", '{');
    rf_json_string(&json, "path", report->path);
    rf_json_number(&json, "events", report->events);
    rf_json_number(&json, "threads", report->threads);
    rf_json_bool(&json, "truncated", report->truncated != NULL);
    rf_json_close(&json, '}');
    rf_json_open(&json, "detectors", '[');
    for (size_t i = 0; i < comparison.count; i++) {
        const struct column *column = &comparison.columns[i];
        rf_json_open(&json, NULL, '{');
        rf_json_string(&json, "name", report->results[i].detector);
        rf_json_number(&json, "races", report->results[i].races.count);
        rf_json_number(&json, "variables", column->variable_count);
        rf_json_number(&json, "sites", column->sites);
        rf_json_real(&json, "events_per_second", column->speed, 0);
        rf_json_real(&json, "bytes_per_variable", column->bytes, 1);
        rf_json_open(&json, "not_reported_by", '{'); /* how many of its racy variables each other detector does not report */
        for (size_t b = 0; b < comparison.count; b++)
            if (b != i)
                rf_json_number(&json, report->results[b].detector, comparison.only[i * comparison.count + b]);
        rf_json_close(&json, '}');
        rf_json_close(&json, '}');
    }
    rf_json_close(&json, ']');
    rf_json_close(&json, '}');
    end(&comparison);
}
