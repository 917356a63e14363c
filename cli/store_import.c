/* redflag store import, merge: reports, pairs, exports, other stores and spools. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/pair_list.h"
#include "cli/store_actions.h"
#include "fleet/results.h"
#include "fleet/spool.h"
#include "trace/grow.h"

static char *whole_file(const char *path, size_t *length)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *text = NULL;
    size_t capacity = 0, used = 0;
    if (!file)
        return NULL;
    do {
        text = rf_reserve(text, &capacity, used + 65536 + 1, 1);
        size_t got = fread(text + used, 1, 65536, file);
        used += got;
        if (!got)
            break;
    } while (true);
    int cause = ferror(file) ? errno : 0;
    if (file != stdin)
        fclose(file);
    if (cause) {
        free(text);
        errno = cause;
        return NULL;
    }
    text[used] = 0;
    *length = used;
    return text;
}

#define MOST_PAIRS 1000000u /* at once: a store is for those that are worth being looked for */

static bool add_given(void *context, const char *first, const char *second, long long priority)
{
    json_array_append_new(context, json_pack("{s:s, s:s, s:s, s:s, s:I}", "redflag", "pair", "first", first, "second",
                                             second, "origin", "given", "priority", (json_int_t)priority));
    return true;
}

/* As cli/pair_list.h has it. */
static json_t *pairs_of_text(char *text, char error[160])
{
    struct rf_pair_list list = { .names = NULL };
    char why[160];
    unsigned line = 0;
    bool good = true;
    for (char *next, *at = text; at && *at && good; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = 0;
        line++;
        good = rf_pair_list_line(&list, at, why);
        if (!good)
            snprintf(error, 160, "line %u: %.120s", line, why);
    }
    uint64_t count = rf_pair_list_pairs(&list, NULL, NULL, NULL);
    if (good && count > MOST_PAIRS) {
        snprintf(error, 160, "%" PRIu64 " pairs are too many for a store; take those that `redflag caper --show` prints",
                 count);
        good = false;
    }
    json_t *all = good ? json_array() : NULL;
    if (all)
        rf_pair_list_pairs(&list, NULL, add_given, all);
    rf_pair_list_free(&list);
    return all;
}

static int other_store(struct rf_store *store, const char *path)
{
    char error[512], *text = NULL;
    size_t size = 0;
    enum rf_store_answer answer;
    struct rf_store *other = rf_store_open(path, 0, &answer, error);
    if (!other) {
        fprintf(stderr, RF_STORE_WHO ": %s\n", error);
        return RF_EXIT_USAGE;
    }
    FILE *memory = open_memstream(&text, &size);
    rf_check_memory(memory, 1);
    answer = rf_store_export(other, memory);
    fclose(memory);
    if (answer != RF_STORE_DONE)
        fprintf(stderr, RF_STORE_WHO ": %s\n", rf_store_error(other));
    rf_store_close(other);
    json_t *all = json_array();
    for (char *next, *at = text; answer == RF_STORE_DONE && *at; at = next + 1) {
        next = strchr(at, '\n');
        json_array_append_new(all, json_loadb(at, (size_t)(next - at), 0, NULL));
    }
    free(text);
    int status = answer != RF_STORE_DONE                       ? RF_EXIT_USAGE
                 : rf_store_apply(store, all) == RF_STORE_DONE ? RF_EXIT_OK
                                                               : rf_store_failed(store);
    json_decref(all);
    return status;
}

static int results_file(struct rf_store *store, const char *path, bool keep)
{
    struct rf_spooled count;
    char error[512];
    if (rf_spool_merge(store, path, keep, &count, error) != RF_STORE_DONE) {
        fprintf(stderr, RF_STORE_WHO ": %s\n", error);
        return RF_EXIT_USAGE;
    }
    if (count.damaged)
        fprintf(stderr, RF_STORE_WHO ": %s: %llu damaged lines were passed over\n", path, (unsigned long long)count.damaged);
    if (count.refused)
        fprintf(stderr, RF_STORE_WHO ": %s: %llu results were refused and are in %s.refused\n", path,
                (unsigned long long)count.refused, path);
    return RF_EXIT_OK;
}

/* What a file holds shows at its beginning: a database, results, reports, or pairs. */
static int import_one(struct rf_store *store, const char *path)
{
    char error[160] = "";
    size_t length;
    char *text = whole_file(path, &length);
    if (!text) {
        fprintf(stderr, RF_STORE_WHO ": %s: %s\n", path, strerror(errno));
        return RF_EXIT_USAGE;
    }
    if (length >= 16 && memcmp(text, "SQLite format 3", 16) == 0) {
        free(text);
        return other_store(store, path);
    }
    json_t *what = NULL;
    if (text[strspn(text, " \n")] == '{') {
        json_t *first = json_loadb(text, strcspn(text, "\n"), 0, NULL);
        bool results = json_object_get(first, "redflag") != NULL;
        json_decref(first);
        if (results) {
            free(text);
            return results_file(store, path, true);
        }
        what = rf_result_of_reports(text, length, error);
    } else {
        what = pairs_of_text(text, error);
    }
    free(text);
    if (!what) {
        fprintf(stderr, RF_STORE_WHO ": %s: %s\n", path, error);
        return RF_EXIT_USAGE;
    }
    int status = rf_store_apply(store, what) == RF_STORE_DONE ? RF_EXIT_OK : rf_store_failed(store);
    json_decref(what);
    return status;
}

static int take_in(struct rf_store *store, const struct rf_store_options *options)
{
    for (int i = 0; i < options->count; i++) {
        int status = import_one(store, options->arguments[i]);
        if (status)
            return status;
    }
    return RF_EXIT_OK;
}

int rf_store_import(struct rf_store *store, const struct rf_store_options *options)
{
    return options->count ? take_in(store, options) : rf_store_wrong("no file for", "import");
}

int rf_store_merge(struct rf_store *store, const struct rf_store_options *options)
{
    if (options->count)
        return take_in(store, options);
    char *spool = rf_spool_place();
    int status = results_file(store, spool, false);
    free(spool);
    return status;
}
