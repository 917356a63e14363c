/* The pairs as a text: lines 'SITE1 SITE2', JSON, or groups of sites and which of them go together, as cli/pair_list.h reads it. */
#ifndef RF_STATIC_PRINT_H
#define RF_STATIC_PRINT_H

#include <stdio.h>

#include "static/pairs.h"

enum rf_static_form { RF_STATIC_LINES, RF_STATIC_JSON, RF_STATIC_GROUPS };

bool rf_static_form_named(const char *name, enum rf_static_form *form);
void rf_static_print(FILE *out, enum rf_static_form form, const struct rf_program_ir *program,
                     const struct rf_static_pairs *pairs);

#endif
