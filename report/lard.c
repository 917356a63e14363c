/* Tables 4.2 and 4.3 of the paper: see report/lard.h. */
#include "report/lard.h"

#include <inttypes.h>

#include "report/json.h"

/* Text and Markdown are one table with other borders. */
struct borders {
    const char *left, *between, *right;
    bool rule;
};

static void rule(FILE *out, const struct borders *borders, unsigned columns)
{
    if (!borders->rule)
        return;
    fputs("|---|", out);
    for (unsigned i = 1; i < columns; i++)
        fputs("---:|", out);
    fputc('\n', out);
}

static void put_count(FILE *out, const struct borders *borders, const struct rf_lard_count *count)
{
    fprintf(out, "%s%9zu%s%7zu", borders->between, count->accesses, borders->between, count->places);
}

static void accuracy(FILE *out, const struct rf_lard *lard, const struct borders *borders)
{
    const struct rf_lard_row *rows[3] = { lard->has_language ? &lard->language : NULL, &lard->rows[0],
                                          &lard->rows[RF_LARD_ROWS - 1] };
    fprintf(out, "%s%-11s%s%9s%s%7s%s\n", borders->left, "", borders->between, "accesses", borders->between, "places",
            borders->right);
    rule(out, borders, 3);
    for (unsigned i = 0; i < 3; i++) {
        if (!rows[i])
            continue;
        fprintf(out, "%s%-11s", borders->left, rows[i]->name);
        put_count(out, borders, &rows[i]->reported);
        fprintf(out, "%s\n", borders->right);
    }
    if (lard->has_language)
        fprintf(out,
                "\nLARD beside the language's own trace: %zu accesses in %zu places are false, %zu in %zu are missed.\n",
                lard->language.made_up.accesses, lard->language.made_up.places, lard->language.missed.accesses,
                lard->language.missed.places);
}

static void harm(FILE *out, const struct rf_lard *lard, const struct borders *borders)
{
    fprintf(out, "%s%-11s%s%9s%s%7s%s%9s%s%7s%s%9s%s%7s%s%s%s\n", borders->left, "view", borders->between, "reported",
            borders->between, "places", borders->between, "false", borders->between, "places", borders->between, "missed",
            borders->between, "places", borders->between, "what it is", borders->right);
    rule(out, borders, 8);
    for (unsigned i = 0; i < RF_LARD_ROWS; i++) {
        const struct rf_lard_row *row = &lard->rows[i];
        fprintf(out, "%s%-11s", borders->left, row->name);
        put_count(out, borders, &row->reported);
        put_count(out, borders, &row->made_up);
        put_count(out, borders, &row->missed);
        fprintf(out, "%s%s%s\n", borders->between, row->meaning, borders->right);
    }
}

static void tables(FILE *out, const struct rf_lard *lard, const char *mark, const struct borders *borders)
{
    fprintf(out, "%s%s: %" PRIu64 " events, %" PRIu64 " of the runtime system's, under %s%s\n\n", mark, lard->path,
            lard->events, lard->system_events, lard->detector,
            lard->truncated ? " (truncated: only the part before the damage)" : "");
    accuracy(out, lard, borders);
    fputs("\nAccesses that race with an earlier one, and the places they are in; false and missed beside LARD:\n\n", out);
    harm(out, lard, borders);
}

void rf_lard_text(FILE *out, const struct rf_lard *lard)
{
    tables(out, lard, "", &(struct borders){ "", "  ", "", false });
}

void rf_lard_markdown(FILE *out, const struct rf_lard *lard)
{
    tables(out, lard, "## ", &(struct borders){ "| ", " | ", " |", true });
}

static void json_count(struct rf_json *json, const char *key, const struct rf_lard_count *count)
{
    rf_json_open(json, key, '{');
    rf_json_number(json, "accesses", count->accesses);
    rf_json_number(json, "places", count->places);
    rf_json_close(json, '}');
}

static void json_row(struct rf_json *json, const char *key, const struct rf_lard_row *row)
{
    rf_json_open(json, key, '{');
    rf_json_string(json, "name", row->name);
    rf_json_string(json, "meaning", row->meaning);
    json_count(json, "reported", &row->reported);
    json_count(json, "false", &row->made_up);
    json_count(json, "missed", &row->missed);
    rf_json_close(json, '}');
}

void rf_lard_json(FILE *out, const struct rf_lard *lard)
{
    struct rf_json json = { .out = out, .first = true };
    rf_json_open(&json, NULL, '{');
    rf_json_open(&json, "trace", '{');
    rf_json_string(&json, "path", lard->path);
    rf_json_number(&json, "events", lard->events);
    rf_json_number(&json, "system_events", lard->system_events);
    rf_json_bool(&json, "truncated", lard->truncated != NULL);
    rf_json_close(&json, '}');
    rf_json_string(&json, "detector", lard->detector);
    if (lard->has_language)
        json_row(&json, "language", &lard->language);
    rf_json_open(&json, "views", '[');
    for (unsigned i = 0; i < RF_LARD_ROWS; i++)
        json_row(&json, NULL, &lard->rows[i]);
    rf_json_close(&json, ']');
    rf_json_close(&json, '}');
}
