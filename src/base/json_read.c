/* SPDX-License-Identifier: Apache-2.0
 *
 * json_read.c - a reader that works in place. It does not allocate.
 *
 * It walks the text with one cursor; nesting is a bit per level (object or array), so no input can
 * exhaust the stack. Behind blyi_json_check() the other walks only need to keep brackets and
 * strings apart.
 */
#include "base/json.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

static size_t utf8_write(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* ---- Check ---- */

#define DEPTH_MAX 1024

struct cursor {
    const char *start, *p, *end;
    const char *expected; /* set by whoever finds the text wrong at p */
};

static char peek(const struct cursor *c)
{
    if (c->p < c->end)
        return *c->p;
    return '\0';
}

static bool wrong(struct cursor *c, const char *expected)
{
    c->expected = expected;
    return false;
}

static void skip_blanks(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

static bool skip_digits(struct cursor *c)
{
    const char *first = c->p;
    while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
        c->p++;
    return c->p > first || wrong(c, "a digit");
}

static bool check_number(struct cursor *c)
{
    if (peek(c) == '-')
        c->p++;
    if (peek(c) == '0')
        c->p++;
    else if (!skip_digits(c))
        return false;
    if (peek(c) == '.') {
        c->p++;
        if (!skip_digits(c))
            return false;
    }
    if (peek(c) == 'e' || peek(c) == 'E') {
        c->p++;
        if (peek(c) == '+' || peek(c) == '-')
            c->p++;
        return skip_digits(c);
    }
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The four digits at c->p; false when they are not. */
static bool read_hex4(struct cursor *c, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(peek(c));
        if (digit < 0)
            return wrong(c, "four hexadecimal digits");
        *value = *value << 4 | (uint32_t)digit;
        c->p++;
    }
    return true;
}

/* Behind "\u". */
static bool read_unicode_escape(struct cursor *c, uint32_t *code)
{
    uint32_t low;
    if (!read_hex4(c, code))
        return false;
    if (*code < 0xd800 || *code > 0xdfff)
        return true;
    if (*code > 0xdbff || c->end - c->p < 2 || c->p[0] != '\\' || c->p[1] != 'u')
        return wrong(c, "a pair of surrogates");
    c->p += 2;
    if (!read_hex4(c, &low))
        return false;
    if (low < 0xdc00 || low > 0xdfff)
        return wrong(c, "a pair of surrogates");
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Reads one character of a string, decoded, and moves past it. */
static bool read_char(struct cursor *c, char out[4], size_t *length)
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (*c->p != '\\') {
        *length = blyi_utf8_length((const unsigned char *)c->p, (const unsigned char *)c->end);
        if (*length == 0)
            return wrong(c, "UTF-8");
        if ((unsigned char)*c->p < 0x20)
            return wrong(c, "no control character");
        memcpy(out, c->p, *length);
        c->p += *length;
        return true;
    }
    c->p++;
    uint32_t code;
    if (peek(c) == 'u') {
        c->p++;
        if (!read_unicode_escape(c, &code))
            return false;
    } else {
        const char *found = c->p < c->end && *c->p ? strchr(escapes, *c->p) : NULL;
        if (found == NULL)
            return wrong(c, "an escape");
        code = (unsigned char)meanings[found - escapes];
        c->p++;
    }
    *length = utf8_write(code, out);
    return true;
}

static bool check_string(struct cursor *c)
{
    char decoded[4];
    size_t length;
    if (peek(c) != '"')
        return wrong(c, "a string");
    for (c->p++; c->p < c->end && *c->p != '"';)
        if (!read_char(c, decoded, &length))
            return false;
    if (c->p == c->end)
        return wrong(c, "the end of a string");
    c->p++;
    return true;
}

static bool check_word(struct cursor *c, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(c->end - c->p) < length || memcmp(c->p, word, length) != 0)
        return wrong(c, "a value");
    c->p += length;
    return true;
}

static bool check_scalar(struct cursor *c)
{
    switch (peek(c)) {
    case '"':
        return check_string(c);
    case 't':
        return check_word(c, "true");
    case 'f':
        return check_word(c, "false");
    case 'n':
        return check_word(c, "null");
    default:
        if (peek(c) == '-' || (peek(c) >= '0' && peek(c) <= '9'))
            return check_number(c);
        return wrong(c, "a value");
    }
}

static bool check_key(struct cursor *c)
{
    skip_blanks(c);
    if (!check_string(c))
        return false;
    skip_blanks(c);
    if (peek(c) != ':')
        return wrong(c, "':'");
    c->p++;
    return true;
}

/* One value and nothing behind it. */
static bool check_text(struct cursor *c, int max_depth)
{
    uint64_t is_object[DEPTH_MAX / 64]; /* a bit per open bracket */
    int depth = 0;
    for (;;) {
        skip_blanks(c);
        char open = peek(c);
        if (open == '{' || open == '[') {
            if (depth == max_depth)
                return wrong(c, "less nesting");
            uint64_t bit = (uint64_t)1 << (depth % 64);
            is_object[depth / 64] =
                (depth % 64 ? is_object[depth / 64] & ~bit : 0) | (open == '{' ? bit : 0);
            depth++;
            c->p++;
            skip_blanks(c);
            if (peek(c) != (open == '{' ? '}' : ']')) {
                if (open == '{' && !check_key(c))
                    return false;
                continue; /* to the first value inside */
            }
        } else if (!check_scalar(c)) {
            return false;
        }
        /* Behind a value, or before a bracket that closes an empty one. */
        for (;;) {
            skip_blanks(c);
            if (depth == 0)
                return c->p == c->end || wrong(c, "the end of the text");
            bool in_object = is_object[(depth - 1) / 64] >> ((depth - 1) % 64) & 1;
            if (peek(c) == ',') {
                c->p++;
                if (in_object && !check_key(c))
                    return false;
                break;
            }
            if (peek(c) != (in_object ? '}' : ']'))
                return wrong(c, in_object ? "',' or '}'" : "',' or ']'");
            c->p++;
            depth--;
        }
    }
}

bly_status blyi_json_check(const char *text, size_t length, int max_depth)
{
    struct cursor c = {.start = text, .p = text, .end = text + length};
    if (max_depth > DEPTH_MAX)
        max_depth = DEPTH_MAX;
    if (check_text(&c, max_depth < 0 ? 0 : max_depth))
        return BLY_OK;
    size_t line = 1;
    for (const char *p = text; p < c.p; p++)
        line += *p == '\n';
    return blyi_fail(BLY_E_PARSE, "JSON text of %zu bytes, byte %zu in line %zu: %s is needed",
                     length, (size_t)(c.p - c.start), line, c.expected);
}

/* ---- Lookup ---- */

/* Moves past the value at c->p; false when the text ends inside it. */
static bool skip_value(struct cursor *c)
{
    size_t depth = 0;
    while (c->p < c->end) {
        char ch = *c->p;
        if (ch == '"') {
            if (!check_string(c))
                return false;
            if (depth == 0)
                return true;
            continue;
        }
        if (depth == 0 && strchr(",}] \t\r\n", ch))
            return true; /* behind a number or a word */
        c->p++;
        if (ch == '{' || ch == '[')
            depth++;
        if ((ch == '}' || ch == ']') && --depth == 0)
            return true;
    }
    return depth == 0;
}

/* Moves past the string at c->p; true when it reads `word`. */
static bool string_is(struct cursor *c, const char *word, size_t length)
{
    bool same = true;
    for (c->p++; c->p < c->end && *c->p != '"';) {
        char decoded[4];
        size_t n;
        if (!read_char(c, decoded, &n))
            return false;
        if (same && n <= length && memcmp(decoded, word, n) == 0) {
            word += n;
            length -= n;
        } else {
            same = false;
        }
    }
    if (c->p < c->end)
        c->p++;
    return same && length == 0;
}

/* From an object to the value of its last member of this name, as most readers take it. */
static bool enter_member(struct cursor *c, const char *name, size_t length)
{
    const char *found = NULL;
    if (peek(c) != '{')
        return false;
    c->p++;
    for (;;) {
        skip_blanks(c);
        if (peek(c) != '"')
            break;
        bool same = string_is(c, name, length);
        skip_blanks(c);
        if (peek(c) != ':')
            break;
        c->p++;
        skip_blanks(c);
        if (same)
            found = c->p;
        const char *before = c->p;
        if (!skip_value(c) || c->p == before)
            break;
        skip_blanks(c);
        if (peek(c) != ',')
            break;
        c->p++;
    }
    c->p = found;
    return found != NULL;
}

/* Decodes the string at c->p into buf, or only measures it when buf is NULL. */
static bool decode_string(struct cursor c, char *buf, size_t size)
{
    size_t used = 0;
    for (c.p++; c.p < c.end && *c.p != '"';) {
        char decoded[4];
        size_t n;
        if (!read_char(&c, decoded, &n) || decoded[0] == '\0' || n >= size - used)
            return false;
        if (buf)
            memcpy(buf + used, decoded, n);
        used += n;
    }
    if (buf)
        buf[used] = '\0';
    return c.p < c.end;
}

static bool copy_scalar(struct cursor *c, char *buf, size_t size)
{
    if (peek(c) == '"')
        return decode_string(*c, NULL, size) && decode_string(*c, buf, size);
    const char *first = c->p;
    if (!check_scalar(c) || (size_t)(c->p - first) >= size)
        return false;
    memcpy(buf, first, (size_t)(c->p - first));
    buf[c->p - first] = '\0';
    return true;
}

bool blyi_json_lookup(const char *text, const char *path, char *buf, size_t size)
{
    struct cursor c = {.start = text, .p = text, .end = text + strlen(text)};
    skip_blanks(&c);
    while (*path) {
        size_t length = strcspn(path, ".");
        if (!enter_member(&c, path, length))
            return false;
        path += length;
        path += *path == '.';
    }
    return size > 0 && copy_scalar(&c, buf, size);
}
