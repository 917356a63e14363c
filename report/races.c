/* Races as text for people and as JSON for programs. doc/json.md documents the JSON. */
#include <inttypes.h>
#include <string.h>

#include "report/json.h"
#include "report/report.h"

const char *rf_race_kind(const struct rf_race *race)
{
    bool first = rf_op_writes(race->first.op), second = rf_op_writes(race->second.op);
    if (!race->first.number &&
        race->first.thread == RF_UNKNOWN) /* a breach of the discipline, with nobody on the other side */
        return second ? "unprotected-write" : "unprotected-read";
    return first ? second ? "write-write" : "write-read" : second ? "read-write" : "read-read";
}

/* The operation as a trace writes it; accesses of a transaction as such. */
static const char *op_text(enum rf_op op)
{
    return op == RF_COMMIT_READ ? "r in commit" : op == RF_COMMIT_WRITE ? "w in commit" : rf_op_text(op);
}

static void locks_text(FILE *out, const struct rf_namer *names, const struct rf_race_access *access)
{
    if (!access->locks)
        return;
    fputs(access->lock_count ? ", holding " : ", holding no lock", out);
    for (uint32_t i = 0; i < access->lock_count; i++) {
        char buffer[32];
        fprintf(out, "%s%s", i ? ", " : "", names->object(names->context, access->locks[i], buffer));
    }
}

static void access_text(FILE *out, const struct rf_namer *names, const char *which, const struct rf_race_access *access)
{
    fprintf(out, "    %-7s", which);
    if (!access->number && access->thread == RF_UNKNOWN) {
        fputs("not known to this detector\n", out);
        return;
    }
    if (access->number)
        fprintf(out, "event %" PRIu64 ", ", access->number);
    fprintf(out, "thread %s, %s", access->thread == RF_UNKNOWN ? "?" : names->thread(names->context, access->thread),
            op_text(access->op));
    const char *site = names->site(names->context, access->site);
    if (*site)
        fprintf(out, " at %s", site);
    locks_text(out, names, access);
    fputc('\n', out);
}

static void plural(FILE *out, uint64_t count, const char *what)
{
    fprintf(out, "%" PRIu64 " %s%s", count, what, count == 1 ? "" : "s");
}

/* Statistics that the papers print as a share of another one. */
static double share_of(const struct rf_result *result, const struct rf_statistic *statistic)
{
    static const struct {
        const char *parts, *whole; /* names that begin so are parts of it */
    } shares[] = {
        { "short circuit: ", "checks" },
        { "lockset already computed", "checks" },
        { "full traversals", "checks" },
        { "accesses sampled", "accesses" },
        { "synchronisations sampled", "synchronisations" },
        { "periods sampled", "periods" },
    };
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        if (strncmp(statistic->name, shares[i].parts, strlen(shares[i].parts)) != 0)
            continue;
        for (size_t s = 0; s < result->statistic_count; s++)
            if (!strcmp(result->statistics[s].name, shares[i].whole) && result->statistics[s].value)
                return (double)statistic->value / (double)result->statistics[s].value;
    }
    return -1;
}

static double bytes_per_variable(const struct rf_result *result)
{
    return result->variables ? (double)result->variable_bytes / (double)result->variables : 0;
}

static void statistics_text(FILE *out, const struct rf_result *result)
{
    for (size_t s = 0; s < result->statistic_count; s++) {
        const struct rf_statistic *statistic = &result->statistics[s];
        double share = share_of(result, statistic);
        fprintf(out, "  %-44s %14" PRIu64, statistic->name, statistic->value);
        if (share >= 0)
            fprintf(out, " %6.2f%%", 100 * share);
        fputc('\n', out);
    }
    fprintf(out, "  %-44s %14.3f\n  %-44s %14" PRIu64 "\n  %-44s %14.3f\n", "seconds in the detector", result->seconds,
            "bytes of metadata", result->bytes, "bytes for each variable", bytes_per_variable(result));
}

void rf_report_text(FILE *out, const struct rf_report *report, bool statistics)
{
    char buffer[32];
    const struct rf_namer *names = &report->names;
    fprintf(out, "%s: ", report->path);
    plural(out, report->events, "event");
    fputs(", ", out);
    plural(out, report->threads, "thread");
    fputc('\n', out);
    if (report->truncated)
        fprintf(out, "  truncated: only the part before the damage was analysed\n");
    for (size_t i = 0; i < report->result_count; i++) {
        const struct rf_result *result = &report->results[i];
        fprintf(out, "%s: ", result->detector);
        if (result->races.count)
            plural(out, result->races.count, "race");
        else
            fputs("no race", out);
        fputc('\n', out);
        for (size_t r = 0; r < result->races.count; r++) {
            const struct rf_race *race = &result->races.list[r];
            fprintf(out, "  %s on %s", rf_race_kind(race), names->variable(names->context, race->addr, buffer));
            if (race->addr < RF_NAMED_BASE)
                fprintf(out, " (%u byte%s)", race->size, race->size == 1 ? "" : "s");
            fputs(race->predictive ? ", may happen under another schedule\n" : "\n", out);
            access_text(out, names, "first", &race->first);
            access_text(out, names, "second", &race->second);
        }
        if (statistics)
            statistics_text(out, result);
    }
}

static void access_json(struct rf_json *json, const struct rf_namer *names, const char *key,
                        const struct rf_race_access *access)
{
    char buffer[32];
    rf_json_open(json, key, '{');
    if (access->number)
        rf_json_number(json, "event", access->number);
    if (access->thread != RF_UNKNOWN)
        rf_json_string(json, "thread", names->thread(names->context, access->thread));
    if (access->number || access->thread != RF_UNKNOWN) {
        bool commit = access->op == RF_COMMIT_READ || access->op == RF_COMMIT_WRITE;
        rf_json_string(json, "op", commit ? "commit" : rf_op_text(access->op));
        rf_json_string(json, "site", names->site(names->context, access->site));
    }
    if (access->locks) {
        rf_json_open(json, "locks", '[');
        for (uint32_t i = 0; i < access->lock_count; i++)
            rf_json_string(json, NULL, names->object(names->context, access->locks[i], buffer));
        rf_json_close(json, ']');
    }
    rf_json_close(json, '}');
}

static void result_json(struct rf_json *json, const struct rf_namer *names, const struct rf_result *result)
{
    char buffer[32];
    rf_json_open(json, NULL, '{');
    rf_json_string(json, "name", result->detector);
    rf_json_open(json, "races", '[');
    for (size_t r = 0; r < result->races.count; r++) {
        const struct rf_race *race = &result->races.list[r];
        rf_json_open(json, NULL, '{');
        rf_json_string(json, "variable", names->variable(names->context, race->addr, buffer));
        if (race->addr < RF_NAMED_BASE)
            rf_json_number(json, "size", race->size);
        rf_json_string(json, "kind", rf_race_kind(race));
        rf_json_bool(json, "predictive", race->predictive);
        access_json(json, names, "first", &race->first);
        access_json(json, names, "second", &race->second);
        rf_json_close(json, '}');
    }
    rf_json_close(json, ']');
    rf_json_open(json, "statistics", '{');
    for (size_t s = 0; s < result->statistic_count; s++)
        rf_json_number(json, result->statistics[s].name, result->statistics[s].value);
    rf_json_close(json, '}');
    rf_json_real(json, "seconds", result->seconds, 6);
    rf_json_number(json, "bytes", result->bytes);
    rf_json_number(json, "variables", result->variables);
    rf_json_real(json, "bytes_per_variable", bytes_per_variable(result), 3);
    rf_json_close(json, '}');
}

void rf_report_json(FILE *out, const struct rf_report *report)
{
    struct rf_json json = { .out = out, .first = true };
    rf_json_open(&json, NULL, '{');
    rf_json_open(&json, "trace", '{');
    rf_json_string(&json, "path", report->path);
    rf_json_string(&json, "format", report->format);
    rf_json_number(&json, "events", report->events);
    rf_json_number(&json, "threads", report->threads);
    rf_json_number(&json, "sites", report->sites);
    rf_json_bool(&json, "truncated", report->truncated != NULL);
    if (report->truncated)
        rf_json_string(&json, "error", report->truncated);
    rf_json_real(&json, "seconds", report->seconds, 6);
    rf_json_close(&json, '}');
    rf_json_open(&json, "detectors", '[');
    for (size_t i = 0; i < report->result_count; i++)
        result_json(&json, &report->names, &report->results[i]);
    rf_json_close(&json, ']');
    rf_json_close(&json, '}');
}
