/* The actions of `redflag store`, and what they share. */
#ifndef RF_CLI_STORE_ACTIONS_H
#define RF_CLI_STORE_ACTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "fleet/store.h"

#define RF_STORE_WHO "redflag store"

struct rf_store_options {
    const char *where, *output;
    bool json;
    double occurs, patience;
    char **arguments;
    int count;
    FILE *out;
};

/* Each says what went wrong and returns the status. */
int rf_store_wrong(const char *what, const char *value);
int rf_store_failed(const struct rf_store *store);

int rf_store_status(struct rf_store *store, const struct rf_store_options *options);
int rf_store_races(struct rf_store *store, const struct rf_store_options *options);
int rf_store_pairs(struct rf_store *store, const struct rf_store_options *options);
int rf_store_import(struct rf_store *store, const struct rf_store_options *options);
int rf_store_merge(struct rf_store *store, const struct rf_store_options *options);

#endif
