/* A JSON writer for a stream: it keeps the commas and the indentation, the caller keeps the braces in balance. */
#ifndef RF_REPORT_JSON_H
#define RF_REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct rf_json {
    FILE *out;
    unsigned depth;
    bool first; /* nothing was written in the current object or array */
    bool line;  /* all on one line, and no line feed at its end */
};

/* The key is NULL inside an array and for the outermost value. */
void rf_json_open(struct rf_json *json, const char *key, char bracket); /* '{' or '[' */
void rf_json_close(struct rf_json *json, char bracket);                 /* '}' or ']' */
void rf_json_string(struct rf_json *json, const char *key, const char *value);
void rf_json_number(struct rf_json *json, const char *key, uint64_t value);
void rf_json_real(struct rf_json *json, const char *key, double value, int digits);
void rf_json_bool(struct rf_json *json, const char *key, bool value);

#endif
