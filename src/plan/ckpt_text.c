/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_text.c - see ckpt_text.h.
 */
#include "plan/ckpt_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "base/utf8.h"

#define BRIEF_MAX 40

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* What comes before `end`, which is taken away too; all of it when there is no `end`. */
static bool split(struct blyi_ckpt_text *rest, char end, struct blyi_ckpt_text *part)
{
    const char *found = rest->length > 0 ? memchr(rest->at, end, rest->length) : NULL;
    size_t length = found != NULL ? (size_t)(found - rest->at) : rest->length;
    size_t taken = found != NULL ? length + 1 : length;
    *part = (struct blyi_ckpt_text){rest->at, length};
    *rest = (struct blyi_ckpt_text){rest->at + taken, rest->length - taken};
    return found != NULL;
}

bool blyi_ckpt_text_line(struct blyi_ckpt_text *rest, struct blyi_ckpt_text *line)
{
    if (rest->length == 0)
        return false;
    split(rest, '\n', line);
    if (line->length > 0 && line->at[line->length - 1] == '\r')
        line->length--;
    return true;
}

bool blyi_ckpt_text_field(struct blyi_ckpt_text *rest, struct blyi_ckpt_text *field)
{
    bool more = split(rest, ',', field);
    while (field->length > 0 && is_space(field->at[0])) {
        field->at++;
        field->length--;
    }
    while (field->length > 0 && is_space(field->at[field->length - 1]))
        field->length--;
    return more;
}

size_t blyi_ckpt_text_count_fields(struct blyi_ckpt_text line)
{
    size_t n = 1;
    for (size_t i = 0; i < line.length; i++)
        n += line.at[i] == ',';
    return n;
}

bool blyi_ckpt_text_word(struct blyi_ckpt_text *rest, struct blyi_ckpt_text *word)
{
    while (rest->length > 0 && (is_space(rest->at[0]) || rest->at[0] == ',')) {
        rest->at++;
        rest->length--;
    }
    size_t length = 0;
    while (length < rest->length && !is_space(rest->at[length]) && rest->at[length] != ',')
        length++;
    *word = (struct blyi_ckpt_text){rest->at, length};
    *rest = (struct blyi_ckpt_text){rest->at + length, rest->length - length};
    return length > 0;
}

bool blyi_ckpt_text_equal(struct blyi_ckpt_text text, const char *other)
{
    return text.length == strlen(other) && memcmp(text.at, other, text.length) == 0;
}

bool blyi_ckpt_text_is_blank(struct blyi_ckpt_text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!is_space(text.at[i]))
            return false;
    return true;
}

static bool is_printable(char c)
{
    return (unsigned char)c >= ' ' && (unsigned char)c != 0x7f;
}

bool blyi_ckpt_text_is_printable(struct blyi_ckpt_text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!is_printable(text.at[i]))
            return false;
    return true;
}

bool blyi_ckpt_text_uint(struct blyi_ckpt_text text, uint64_t *value)
{
    uint64_t number = 0;
    if (text.length == 0)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (!is_digit(text.at[i]))
            return false;
        uint64_t digit = (uint64_t)(text.at[i] - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *value = number;
    return true;
}

bool blyi_ckpt_text_thousandths(struct blyi_ckpt_text text, uint64_t *value)
{
    struct blyi_ckpt_text rest = text, whole;
    uint64_t number = 0, decimals = 0;
    bool point = split(&rest, '.', &whole);
    if (!blyi_ckpt_text_uint(whole, &number) || number > UINT64_MAX / 1000 - 1)
        return false;
    if (point) {
        if (rest.length > 3 || !blyi_ckpt_text_uint(rest, &decimals))
            return false;
        for (size_t i = rest.length; i < 3; i++)
            decimals *= 10;
    }
    *value = number * 1000 + decimals;
    return true;
}

int blyi_ckpt_text_brief(struct blyi_ckpt_text text)
{
    const unsigned char *at = (const unsigned char *)text.at, *end = at + text.length;
    int length = 0;
    while ((size_t)length < text.length && length < BRIEF_MAX && is_printable(text.at[length])) {
        size_t more = blyi_utf8_length(at + length, end);
        if (more == 0)
            break;
        length += (int)more;
    }
    return length;
}

/* ── Files ────────────────────────────────────────────────────────────────────────────────── */

static bly_status read_all(FILE *file, const char *path, size_t max, char *at, size_t *length)
{
    *length = fread(at, 1, max + 1, file);
    if (ferror(file))
        return blyi_fail(BLY_E_IO, "%s: %s", path, strerror(errno));
    if (*length > max)
        return blyi_fail(BLY_E_PARSE, "%s: longer than %zu bytes, which no chain is", path, max);
    return BLY_OK;
}

bly_status blyi_ckpt_text_read(const char *path, size_t max, char **at, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return blyi_fail(BLY_E_IO, "%s: %s", path, strerror(errno));
    bly_status status = BLY_OK;
    char *text = blyi_host_alloc(max + 1);
    if (text == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory for %zu bytes", path, max + 1);
    else
        status = read_all(file, path, max, text, length);
    fclose(file);
    if (status == BLY_OK)
        *at = text;
    else
        blyi_host_free(text);
    return status;
}
