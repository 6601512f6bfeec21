/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c - a writer that streams. It does not allocate.
 */
#include "base/json.h"
#include "base/assert.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

/* ---- Writer ---- */

static void write_string(FILE *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    fputc('"', out);
    while (p < end) {
        size_t length = blyi_utf8_length(p, end);
        if (length == 0) {
            fputs("\xef\xbf\xbd", out); /* U+FFFD */
            length = 1;
        } else if (*p == '"' || *p == '\\') {
            fprintf(out, "\\%c", *p);
        } else if (*p == '\n') {
            fputs("\\n", out);
        } else if (*p == '\t') {
            fputs("\\t", out);
        } else if (*p < 0x20) {
            fprintf(out, "\\u%04x", *p);
        } else {
            fwrite(p, 1, length, out);
        }
        p += length;
    }
    fputc('"', out);
}

static void start_line(struct blyi_json *json)
{
    fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

static void start_value(struct blyi_json *json, const char *key)
{
    if (json->depth > 0) {
        if (!json->first[json->depth - 1])
            fputc(',', json->out);
        json->first[json->depth - 1] = false;
        start_line(json);
    }
    if (key) {
        write_string(json->out, key);
        fputs(": ", json->out);
    }
}

static void end_value(struct blyi_json *json)
{
    if (json->depth == 0)
        fputc('\n', json->out);
}

static void begin(struct blyi_json *json, const char *key, char bracket)
{
    bly_check_msg(json->depth < (int)BLYI_COUNT(json->first), "depth %d", json->depth);
    start_value(json, key);
    fputc(bracket, json->out);
    json->first[json->depth++] = true;
}

static void end(struct blyi_json *json, char bracket)
{
    bly_check_msg(json->depth > 0, "depth %d", json->depth);
    bool empty = json->first[--json->depth];
    if (!empty)
        start_line(json);
    fputc(bracket, json->out);
    end_value(json);
}

void blyi_json_init(struct blyi_json *json, FILE *out)
{
    *json = (struct blyi_json){.out = out};
}

void blyi_json_begin_object(struct blyi_json *json, const char *key)
{
    begin(json, key, '{');
}

void blyi_json_end_object(struct blyi_json *json)
{
    end(json, '}');
}

void blyi_json_begin_array(struct blyi_json *json, const char *key)
{
    begin(json, key, '[');
}

void blyi_json_end_array(struct blyi_json *json)
{
    end(json, ']');
}

void blyi_json_uint(struct blyi_json *json, const char *key, uint64_t value)
{
    start_value(json, key);
    fprintf(json->out, "%" PRIu64, value);
    end_value(json);
}

void blyi_json_int(struct blyi_json *json, const char *key, int64_t value)
{
    start_value(json, key);
    fprintf(json->out, "%" PRId64, value);
    end_value(json);
}

void blyi_json_text(struct blyi_json *json, const char *key, const char *value)
{
    start_value(json, key);
    if (value)
        write_string(json->out, value);
    else
        fputs("null", json->out);
    end_value(json);
}

void blyi_json_bool(struct blyi_json *json, const char *key, bool value)
{
    start_value(json, key);
    fputs(value ? "true" : "false", json->out);
    end_value(json);
}
