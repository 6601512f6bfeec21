/* SPDX-License-Identifier: Apache-2.0
 *
 * size.c - sizes as text and back, in integers alone.
 */
#include "base/size.h"
#include "base/compiler.h"
#include "base/fail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SIZE_LIMIT ((uint64_t)1 << 63)

static const struct unit {
    const char *name, *brief;
    int shift;
} units[] = {{"TiB", "T", 40}, {"GiB", "G", 30}, {"MiB", "M", 20}, {"KiB", "K", 10}, {"B", "B", 0}};

const char *blyi_size_short(uint64_t bytes, char buf[BLYI_SIZE_TEXT])
{
    const struct unit *unit = units;
    while (unit->shift > 0 && bytes >> unit->shift == 0)
        unit++;
    uint64_t whole = bytes >> unit->shift, rest = bytes & (((uint64_t)1 << unit->shift) - 1);
    if (rest == 0) {
        snprintf(buf, BLYI_SIZE_TEXT, "%" PRIu64 " %s", whole, unit->name);
        return buf;
    }
    /* To the nearest tenth; rest < 2^40, so nothing overflows. */
    uint64_t tenths = (rest * 10 + ((uint64_t)1 << (unit->shift - 1))) >> unit->shift;
    whole += tenths / 10;
    tenths %= 10;
    if (whole == 1024 && unit > units) {
        whole = 1;
        unit--;
    }
    snprintf(buf, BLYI_SIZE_TEXT, "%" PRIu64 ".%" PRIu64 " %s", whole, tenths, unit->name);
    return buf;
}

const char *blyi_size_text(uint64_t bytes, char buf[BLYI_SIZE_TEXT])
{
    char brief[BLYI_SIZE_TEXT];
    if (bytes < 1024)
        snprintf(buf, BLYI_SIZE_TEXT, "%" PRIu64 " B", bytes);
    else
        snprintf(buf, BLYI_SIZE_TEXT, "%" PRIu64 " B (%s)", bytes, blyi_size_short(bytes, brief));
    return buf;
}

/* Bits to shift by for a unit, -1 when there is no such unit. */
static int unit_shift(const char *text)
{
    if (*text == '\0')
        return 0;
    for (size_t i = 0; i < BLYI_COUNT(units); i++)
        if (strcasecmp(text, units[i].name) == 0 || strcasecmp(text, units[i].brief) == 0)
            return units[i].shift;
    return -1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool blyi_size_try_parse(const char *text, uint64_t *bytes)
{
    const char *p = text;
    uint64_t whole = 0;
    if (!is_digit(*p))
        return false;
    for (; is_digit(*p); p++) {
        if (whole > SIZE_LIMIT / 10)
            return false;
        whole = whole * 10 + (uint64_t)(*p - '0');
    }
    const char *digits = p, *digits_end = p;
    if (*p == '.') {
        digits = ++p;
        while (is_digit(*p))
            p++;
        if (p == digits)
            return false;
        digits_end = p;
    }
    while (*p == ' ')
        p++;
    if (*p == '\0' && p[-1] == ' ')
        return false;
    int shift = unit_shift(p);
    if (shift < 0 || whole > SIZE_LIMIT >> shift)
        return false;

    /* floor(0.d1d2.. * 2^shift) from the last digit to the first: exact for any number of
     * digits, since floor(floor(x) / 10) is floor(x / 10). */
    uint64_t fraction = 0;
    while (digits_end > digits)
        fraction = (((uint64_t)(*--digits_end - '0') << shift) + fraction) / 10;
    uint64_t value = (whole << shift) + fraction;
    if (value > SIZE_LIMIT)
        return false;
    *bytes = value;
    return true;
}

bly_status blyi_size_parse(const char *text, uint64_t *bytes)
{
    if (!blyi_size_try_parse(text, bytes))
        return blyi_fail(BLY_E_PARSE,
                         "\"%.64s\" is not a size: a number of at most 2^63 bytes with an optional "
                         "unit B, KiB, MiB, GiB or TiB is needed",
                         text);
    return BLY_OK;
}
