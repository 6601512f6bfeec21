/* SPDX-License-Identifier: Apache-2.0
 *
 * utf8.c - the table of well-formed sequences (Unicode 3.9), as code.
 */
#include "base/utf8.h"

size_t blyi_utf8_length(const unsigned char *p, const unsigned char *end)
{
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    size_t length = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if ((size_t)(end - p) < length)
        return 0;
    /* The second byte rules out overlong forms, surrogates and values above U+10FFFF. */
    unsigned char low = 0x80, high = 0xbf;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return length;
}
