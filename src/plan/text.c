/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c - cuts a text into lines and fields without copying it.
 */
#include "plan/text.h"

#include <string.h>

bool blyi_text_line(struct blyi_text *text, struct blyi_slice *line)
{
    while (text->at < text->end) {
        const char *stop = memchr(text->at, '\n', (size_t)(text->end - text->at));
        const char *next = stop == NULL ? text->end : stop + 1;
        if (stop == NULL)
            stop = text->end;
        if (stop > text->at && stop[-1] == '\r')
            stop--;
        *line = (struct blyi_slice){text->at, (size_t)(stop - text->at)};
        text->at = next;
        text->line++;
        if (line->length > 0 && line->at[0] != '#')
            return true;
    }
    return false;
}

bool blyi_slice_field(struct blyi_slice *rest, char separator, struct blyi_slice *field)
{
    if (rest->at == NULL)
        return false;
    const char *stop = memchr(rest->at, separator, rest->length);
    if (stop == NULL) {
        *field = *rest;
        *rest = (struct blyi_slice){NULL, 0};
        return true;
    }
    *field = (struct blyi_slice){rest->at, (size_t)(stop - rest->at)};
    rest->length -= field->length + 1;
    rest->at = stop + 1;
    return true;
}

bool blyi_slice_is(struct blyi_slice slice, const char *word)
{
    return slice.length == strlen(word) && memcmp(slice.at, word, slice.length) == 0;
}

bool blyi_slice_int(struct blyi_slice s, int64_t *value)
{
    while (s.length > 0 && s.at[0] == ' ') {
        s.at++;
        s.length--;
    }
    while (s.length > 0 && s.at[s.length - 1] == ' ')
        s.length--;
    bool negative = s.length > 0 && s.at[0] == '-';
    uint64_t sum = 0, most = (uint64_t)INT64_MAX + negative;
    if (s.length == negative)
        return false;
    for (size_t i = negative; i < s.length; i++) {
        uint64_t digit = (uint64_t)(s.at[i] - '0');
        if (s.at[i] < '0' || s.at[i] > '9' || sum > (most - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = (int64_t)(negative ? 0 - sum : sum);
    return true;
}

const char *blyi_slice_show(struct blyi_slice s, char buf[48])
{
    size_t n = s.length < 40 ? s.length : 40;
    for (size_t i = 0; i < n; i++)
        buf[i] = (char)(s.at[i] < ' ' || s.at[i] > '~' ? '?' : s.at[i]);
    memcpy(buf + n, s.length > 40 ? "..." : "", s.length > 40 ? 4 : 1);
    return buf;
}
