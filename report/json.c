/* See report/json.h. */
#include "report/json.h"

/* Length of the well-formed UTF-8 sequence at p, 0 if there is none: names in traces are arbitrary bytes, JSON is not. */
static unsigned utf8_length(const unsigned char *p)
{
    unsigned length = *p < 0x80                 ? 1
                      : *p >= 0xc2 && *p < 0xe0 ? 2
                      : *p >= 0xe0 && *p < 0xf0 ? 3
                      : *p >= 0xf0 && *p < 0xf5 ? 4
                                                : 0;
    for (unsigned i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] >= 0xa0) || (*p == 0xf0 && p[1] < 0x90) ||
        (*p == 0xf4 && p[1] >= 0x90))
        return 0;
    return length;
}

static bool is_utf8(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        unsigned length = utf8_length(p);
        if (!length)
            return false;
        p += length;
    }
    return true;
}

/* Text that is not UTF-8 is taken as Latin-1, so that every name stays distinct. */
static void quoted(FILE *out, const char *text)
{
    bool utf8 = is_utf8(text);
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f || (*p > 0x7f && !utf8))
            fprintf(out, "\\u%04x", *p);
        else
            fputc(*p, out);
    }
    fputc('"', out);
}

static void begin(struct rf_json *json, const char *key)
{
    if (!json->first)
        fputc(',', json->out);
    if (json->depth && !json->line)
        fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
    json->first = false;
    if (key) {
        quoted(json->out, key);
        fputs(": ", json->out);
    }
}

void rf_json_open(struct rf_json *json, const char *key, char bracket)
{
    begin(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->first = true;
}

void rf_json_close(struct rf_json *json, char bracket)
{
    json->depth--;
    if (!json->first && !json->line)
        fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
    json->first = false;
    fputc(bracket, json->out);
    if (!json->depth && !json->line)
        fputc('\n', json->out);
}

void rf_json_string(struct rf_json *json, const char *key, const char *value)
{
    begin(json, key);
    quoted(json->out, value);
}

void rf_json_number(struct rf_json *json, const char *key, uint64_t value)
{
    begin(json, key);
    fprintf(json->out, "%llu", (unsigned long long)value);
}

void rf_json_real(struct rf_json *json, const char *key, double value, int digits)
{
    begin(json, key);
    fprintf(json->out, "%.*f", digits, value);
}

void rf_json_bool(struct rf_json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->out);
}
