/* SPDX-License-Identifier: Apache-2.0
 *
 * assert.h - broken invariants of ours stop the process with the values that broke them.
 *
 * bly_assert   compiled away at BLY_DEBUG 0 (but still type-checked)
 * bly_audit    only at BLY_DEBUG 2: whole-structure checks
 * bly_check    always on: damage that would spread silently
 * Misuse of the API is never an assertion; it is a status (fail.h).
 */
#ifndef BLYI_ASSERT_H
#define BLYI_ASSERT_H

#include "base/compiler.h"

#ifndef BLY_DEBUG
#define BLY_DEBUG 0
#endif

_Noreturn void blyi_assert_fail(const char *file, int line, const char *expr, const char *fmt, ...)
    BLYI_PRINTF(4, 5);

#define bly_check_msg(cond, ...)                                                                   \
    (likely(cond) ? (void)0 : blyi_assert_fail(__FILE__, __LINE__, #cond, __VA_ARGS__))
#define bly_check(cond) bly_check_msg(cond, "%s", "")

#define bly_assert_msg(cond, ...) ((BLY_DEBUG < 1) ? (void)0 : bly_check_msg(cond, __VA_ARGS__))
#define bly_assert(cond)          bly_assert_msg(cond, "%s", "")
#define bly_audit(cond)           ((BLY_DEBUG < 2) ? (void)0 : bly_check(cond))

#endif
