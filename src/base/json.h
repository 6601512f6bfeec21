/* SPDX-License-Identifier: Apache-2.0
 *
 * json.h - just enough JSON for a library that may depend on libc alone: a writer for
 * reports and a reader for aclInit's configuration. Tools use a JSON library instead.
 */
#ifndef BLYI_JSON_H
#define BLYI_JSON_H

#include <belay/base.h>
#include <stdbool.h>
#include <stdio.h>

/* Writer: commas and escapes by itself; `key` is NULL inside arrays. Invalid UTF-8 bytes are
 * written as U+FFFD. Depth at most 32 (asserted). Indents by two blanks. */
struct blyi_json {
    FILE *out;
    int depth;
    bool first[32];
};
void blyi_json_init(struct blyi_json *json, FILE *out);
void blyi_json_begin_object(struct blyi_json *json, const char *key);
void blyi_json_end_object(struct blyi_json *json);
void blyi_json_begin_array(struct blyi_json *json, const char *key);
void blyi_json_end_array(struct blyi_json *json);
void blyi_json_uint(struct blyi_json *json, const char *key, uint64_t value);
void blyi_json_int(struct blyi_json *json, const char *key, int64_t value);
void blyi_json_text(struct blyi_json *json, const char *key, const char *value); /* NULL: null */
void blyi_json_bool(struct blyi_json *json, const char *key, bool value);

/* Reader: checks that `text` is one JSON value nested at most max_depth deep, and looks up
 * values by a dotted path of object keys ("defaultDevice.default_device"). */
bly_status blyi_json_check(const char *text, size_t length, int max_depth);
/* Copies the value at `path` (strings unescaped, numbers and words as written) into buf.
 * False, and buf untouched: absent, not a scalar, too long, or a string with U+0000. Of equal
 * keys the last counts. The text must have passed blyi_json_check(). */
bool blyi_json_lookup(const char *text, const char *path, char *buf, size_t size);

#endif
