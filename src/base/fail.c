/* SPDX-License-Identifier: Apache-2.0
 *
 * fail.c - one sentence per thread.
 *
 * The sentence lies in the thread-local image and not behind a pointer: it must be there
 * when host memory has just run out. The library is built with the default TLS model, so a
 * dlopen'ed libbelay.so takes nothing from the loader's small static reserve, and a thread
 * that never fails never touches (nor, when dlopen'ed, even has) the buffer.
 */
#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct {
    bly_status code;
    char text[BLYI_FAIL_MAX];
} last;

void blyi_fail_put(bly_status code, const char *fmt, ...)
{
    int saved_errno = errno;
    char text[BLYI_FAIL_MAX]; /* the arguments may point into last.text */
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof(text), fmt, args) < 0)
        text[0] = '\0';
    va_end(args);
    memcpy(last.text, text, strlen(text) + 1);
    last.code = code;
    errno = saved_errno;
}

void blyi_fail_append(const char *fmt, ...)
{
    if (last.code == BLY_OK)
        return;
    int saved_errno = errno;
    char text[BLYI_FAIL_MAX];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof(text), fmt, args) < 0)
        text[0] = '\0';
    va_end(args);
    size_t used = strlen(last.text), room = sizeof(last.text) - used - 1, more = strlen(text);
    if (more > room)
        more = room;
    memcpy(last.text + used, text, more);
    last.text[used + more] = '\0';
    errno = saved_errno;
}

const char *blyi_fail_text(void)
{
    return last.text;
}

bly_status blyi_fail_code(void)
{
    return last.code;
}

void blyi_fail_clear(void)
{
    last.code = BLY_OK;
    last.text[0] = '\0';
}

const char *bly_last_error(void)
{
    return last.text;
}
