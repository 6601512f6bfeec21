/* SPDX-License-Identifier: Apache-2.0
 *
 * fail.h - the sentence of an error, kept per thread.
 *
 * Whoever decides an error calls blyi_fail() and returns its value; everybody
 * above returns that status unchanged. Nobody logs an error that is returned.
 * The sentence names the object and the numbers that change the reader's next
 * action, has no guess, no trailing newline, and is cut at BLYI_FAIL_MAX.
 */
#ifndef BLYI_FAIL_H
#define BLYI_FAIL_H

#include <belay/base.h>
#include "base/compiler.h"

#define BLYI_FAIL_MAX 2048

void blyi_fail_put(bly_status code, const char *fmt, ...) BLYI_PRINTF(2, 3);

static inline bly_status blyi_fail_is(bly_status code)
{
    return code;
}

/* blyi_fail(code, fmt, ...): has the value `code`, visibly for compilers and analysers. */
#define blyi_fail(code, ...) (blyi_fail_put((code), __VA_ARGS__), blyi_fail_is(code))

/* Adds to the sentence of the error just made ("; held by ..."). */
void blyi_fail_append(const char *fmt, ...) BLYI_PRINTF(1, 2);

/* Sentence and code of this thread's last blyi_fail(); "" and BLY_OK when none
 * since blyi_fail_clear(). A retry that worked clears what its first attempt left. */
const char *blyi_fail_text(void);
bly_status blyi_fail_code(void);
void blyi_fail_clear(void);

#endif
