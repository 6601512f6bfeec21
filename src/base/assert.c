/* SPDX-License-Identifier: Apache-2.0
 *
 * assert.c - the last words of the process. Takes no lock and no host memory, because
 * either may be what is broken.
 */
#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void blyi_assert_fail(const char *file, int line, const char *expr, const char *fmt, ...)
{
    char values[512], text[1024];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(values, sizeof(values), fmt, args) < 0)
        values[0] = '\0';
    va_end(args);
    snprintf(text, sizeof(text) - 1, "belay: %s:%d: broken invariant: %s%s%s", file, line, expr,
             values[0] ? ": " : "", values);
    size_t length = strlen(text);
    text[length++] = '\n';
    if (write(STDERR_FILENO, text, length) < 0) {
        /* nobody is left to tell */
    }
    abort();
}
