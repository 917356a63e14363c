/* See cli/simulate.h. */
#include "cli/simulate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "trace/grow.h"

static uint64_t tracked(const struct rf_checks *checks)
{
    return checks->permission + checks->hardware + checks->software;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* "1,234,567" */
static const char *grouped(uint64_t number, char text[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, number), at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

/* ---- sites and variables ---- */

static int by_cost(const void *a, const void *b)
{
    const struct rf_tally *x = a, *y = b;
    if (x->extra_cycles != y->extra_cycles)
        return x->extra_cycles < y->extra_cycles ? 1 : -1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* The dearest first. The caller frees them. */
static struct rf_tally *dearest(const struct rf_tallies *tallies, uint32_t top, uint32_t *count)
{
    struct rf_tally *list = rf_zeroed(tallies->count, sizeof *list);
    if (tallies->count)
        memcpy(list, tallies->list, tallies->count * sizeof *list);
    qsort(list, tallies->count, sizeof *list, by_cost);
    *count = tallies->count < top ? tallies->count : top;
    return list;
}

static const char *tally_name(const struct rf_simulate_view *view, bool site, uint64_t key, char buffer[32])
{
    if (!site)
        return rf_reader_variable(view->reader, key, buffer);
    const char *name = rf_reader_site(view->reader, (uint32_t)key);
    return *name ? name : "(no site)";
}

static void tallies_text(FILE *out, const struct rf_tallies *tallies, bool site, const struct rf_simulate_view *view)
{
    uint32_t count;
    struct rf_tally *list = dearest(tallies, view->top, &count);
    fprintf(out, "\n%-32s %14s %12s %10s %10s %10s\n", site ? "site" : "variable", "extra cycles", "accesses", "permission",
            "hardware", "software");
    for (uint32_t i = 0; i < count; i++) {
        char buffer[32];
        uint64_t all = tracked(&list[i].checks);
        fprintf(out, "%-32s %14" PRIu64 " %12" PRIu64 " %9.1f%% %9.1f%% %9.1f%%\n",
                tally_name(view, site, list[i].key, buffer), list[i].extra_cycles, all + list[i].checks.untracked,
                100 * share(list[i].checks.permission, all), 100 * share(list[i].checks.hardware, all),
                100 * share(list[i].checks.software, all));
    }
    if (count < tallies->count)
        fprintf(out, "... and %" PRIu32 " more (--top)\n", tallies->count - count);
    free(list);
}

static void checks_json(struct rf_json *json, const char *key, const struct rf_checks *checks)
{
    rf_json_open(json, key, '{');
    rf_json_number(json, "permission", checks->permission);
    rf_json_number(json, "hardware", checks->hardware);
    rf_json_number(json, "software", checks->software);
    rf_json_number(json, "untracked", checks->untracked);
    rf_json_close(json, '}');
}

static void tallies_json(struct rf_json *json, const char *key, const struct rf_tallies *tallies, bool site,
                         const struct rf_simulate_view *view)
{
    uint32_t count;
    struct rf_tally *list = dearest(tallies, view->top, &count);
    rf_json_open(json, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        char buffer[32];
        rf_json_open(json, NULL, '{');
        rf_json_string(json, site ? "site" : "variable", tally_name(view, site, list[i].key, buffer));
        rf_json_number(json, "extra_cycles", list[i].extra_cycles);
        checks_json(json, "checks", &list[i].checks);
        rf_json_close(json, '}');
    }
    rf_json_close(json, ']');
    free(list);
}

/* ---- one machine ---- */

void rf_simulate_text(FILE *out, const struct rf_simulation *s, const struct rf_simulate_view *view)
{
    const struct rf_checks *checks = &s->radish.counts.checks;
    const struct rf_traffic *with = &s->radish.machine.traffic, *without = &s->baseline.traffic;
    uint64_t all = tracked(checks), lines = rf_traffic_lines(with), base = rf_traffic_lines(without), racy = 0;
    char a[32], b[32];
    for (uint32_t i = 0; i < s->race_count; i++)
        racy += s->races[i].size;
    fprintf(out, "%s: %s events, %s accesses, %" PRIu32 " threads on %" PRIu64 " cores\n", view->trace, grouped(s->events, a),
            grouped(s->accesses, b), rf_reader_threads(view->reader), s->config.cores);
    fprintf(out, "  cycles      %s without detection, %s with RADISH: slowdown %.2fx\n",
            grouped(rf_simulation_cycles(s, RF_WITHOUT), a), grouped(rf_simulation_cycles(s, RF_WITH), b),
            rf_simulation_slowdown(s));
    fprintf(out, "  checks      %.2f%% by permission, %.2f%% by hardware, %.2f%% in software; of %s", 100 * share(checks->permission, all),
            100 * share(checks->hardware, all), 100 * share(checks->software, all), grouped(all, a));
    fprintf(out, checks->untracked ? ", and %s accesses that need none\n" : "\n", grouped(checks->untracked, a));
    fprintf(out, "  software    %s checks", grouped(s->radish.software.check_calls, a));
    fprintf(out, ", %s evicted lines stored, %s cycles\n", grouped(s->radish.software.evicted_lines, a),
            grouped(s->radish.software.cycles, b));
    fprintf(out, "  metadata    %s lines made in a cache", grouped(with->metadata_fills, a));
    fprintf(out, ", %s evicted, %s flushed by switches and roll-overs", grouped(with->metadata_evictions, a),
            grouped(s->radish.counts.flushed_lines, b));
    fprintf(out, "; %s clock roll-overs", grouped(s->radish.counts.roll_overs, a));
    fprintf(out, s->config.encoding == RF_ENCODING_COMPACT ? ", %s lines not compact\n" : "\n",
            grouped(s->radish.counts.splits, a));
    fprintf(out, "  traffic     %s bus and memory transactions without, %s with: %+.1f%%\n", grouped(base, a), grouped(lines, b),
            base ? 100 * ((double)lines / (double)base - 1) : 0);
    fprintf(out, "  threads     %s context switches", grouped(s->switches, a));
    fprintf(out, s->identities ? ", %s switches of identity\n" : "\n", grouped(s->identities, a));
    if (s->radish.counts.clears || s->radish.counts.copies) {
        fprintf(out, "  histories   %s cleared", grouped(s->radish.counts.clears, a));
        fprintf(out, ", %s copied\n", grouped(s->radish.counts.copies, a));
    }
    fprintf(out, "  races       %s\n", racy ? grouped(racy, a) : "none");
    if (racy)
        fprintf(out, "              bytes had one, the first at event %" PRIu64 "; `redflag analyze` says which\n", s->races[0].number);
    if (s->tally_sites)
        tallies_text(out, &s->sites, true, view);
    if (s->tally_variables)
        tallies_text(out, &s->variables, false, view);
}

static void traffic_json(struct rf_json *json, const char *key, const struct rf_traffic *traffic)
{
    rf_json_open(json, key, '{');
    rf_json_number(json, "transactions", rf_traffic_lines(traffic));
    rf_json_number(json, "l1_hits", traffic->l1_hits);
    rf_json_number(json, "l2_hits", traffic->l2_hits);
    rf_json_number(json, "llc_hits", traffic->llc_hits);
    rf_json_number(json, "memory_reads", traffic->memory_reads);
    rf_json_number(json, "transfers", traffic->transfers);
    rf_json_number(json, "upgrades", traffic->upgrades);
    rf_json_number(json, "write_backs", traffic->write_backs);
    rf_json_number(json, "broadcasts", traffic->broadcasts);
    rf_json_number(json, "data_evictions", traffic->data_evictions);
    rf_json_close(json, '}');
}

static void simulation_json(struct rf_json *json, const struct rf_simulation *s, const struct rf_simulate_view *view)
{
    const struct rf_traffic *with = &s->radish.machine.traffic;
    uint64_t racy = 0;
    for (uint32_t i = 0; i < s->race_count; i++)
        racy += s->races[i].size;
    rf_json_string(json, "trace", view->trace);
    rf_json_number(json, "events", s->events);
    rf_json_number(json, "accesses", s->accesses);
    rf_json_number(json, "threads", rf_reader_threads(view->reader));
    rf_json_number(json, "cores", s->config.cores);
    rf_json_number(json, "cycles", rf_simulation_cycles(s, RF_WITH));
    rf_json_number(json, "baseline_cycles", rf_simulation_cycles(s, RF_WITHOUT));
    rf_json_real(json, "slowdown", rf_simulation_slowdown(s), 4);
    checks_json(json, "checks", &s->radish.counts.checks);
    rf_json_open(json, "software", '{');
    rf_json_number(json, "checks", s->radish.software.check_calls);
    rf_json_number(json, "evictions", s->radish.software.evicted_lines);
    rf_json_number(json, "cycles", s->radish.software.cycles);
    rf_json_close(json, '}');
    rf_json_number(json, "evictions", with->metadata_evictions);
    rf_json_open(json, "metadata", '{');
    rf_json_number(json, "fills", with->metadata_fills);
    rf_json_number(json, "evictions", with->metadata_evictions);
    rf_json_number(json, "flushed", s->radish.counts.flushed_lines);
    rf_json_number(json, "roll_overs", s->radish.counts.roll_overs);
    rf_json_number(json, "splits", s->radish.counts.splits);
    rf_json_close(json, '}');
    rf_json_open(json, "traffic", '{');
    traffic_json(json, "baseline", &s->baseline.traffic);
    traffic_json(json, "radish", with);
    rf_json_close(json, '}');
    rf_json_number(json, "context_switches", s->switches);
    rf_json_number(json, "identity_switches", s->identities);
    rf_json_number(json, "histories_cleared", s->radish.counts.clears);
    rf_json_number(json, "histories_copied", s->radish.counts.copies);
    rf_json_number(json, "racy_bytes", racy);
    if (s->tally_sites)
        tallies_json(json, "sites", &s->sites, true, view);
    if (s->tally_variables)
        tallies_json(json, "variables", &s->variables, false, view);
}

void rf_simulate_json(FILE *out, const struct rf_simulation *s, const struct rf_simulate_view *view)
{
    struct rf_json json = { .out = out, .first = true };
    rf_json_open(&json, NULL, '{');
    simulation_json(&json, s, view);
    rf_json_close(&json, '}');
    fputc('\n', out);
}

/* ---- several ---- */

void rf_sweep_text(FILE *out, const struct rf_sweep *sweep, const struct rf_simulate_view *view)
{
    fprintf(out, "%s: slowdown by cores and size of the last-level cache\n%10s", view->trace, "cores");
    for (size_t s = 0; s < sweep->size_count; s++) {
        char text[24];
        rf_sweep_size_text(sweep->sizes[s], text);
        fprintf(out, "%10s", text);
    }
    for (size_t c = 0; c < sweep->core_count; c++) {
        fprintf(out, "\n%10" PRIu64, sweep->cores[c]);
        for (size_t s = 0; s < sweep->size_count; s++)
            fprintf(out, "%9.2fx", rf_simulation_slowdown(&sweep->simulations[c * sweep->size_count + s]));
    }
    fputc('\n', out);
}

void rf_sweep_json(FILE *out, const struct rf_sweep *sweep, const struct rf_simulate_view *view)
{
    struct rf_json json = { .out = out, .first = true };
    rf_json_open(&json, NULL, '[');
    for (size_t i = 0; i < sweep->core_count * sweep->size_count; i++) {
        rf_json_open(&json, NULL, '{');
        rf_json_number(&json, "llc_bytes", sweep->simulations[i].config.llc_bytes);
        simulation_json(&json, &sweep->simulations[i], view);
        rf_json_close(&json, '}');
    }
    rf_json_close(&json, ']');
    fputc('\n', out);
}
