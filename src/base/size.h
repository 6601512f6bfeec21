/* SPDX-License-Identifier: Apache-2.0
 *
 * size.h - the one place that reads and writes sizes as text.
 *
 * Text form: exact bytes first, then a rounded unit in brackets where it helps:
 * "268435456 B (256 MiB)". Parsing takes an integer or decimal number with an
 * optional unit B KiB MiB GiB TiB (K M G T and lower case mean the same powers of
 * two), no sign, no blanks inside the number; a fraction must come to whole bytes
 * after rounding down ("60.97GiB").
 */
#ifndef BLYI_SIZE_H
#define BLYI_SIZE_H

#include <belay/base.h>
#include <stdbool.h>

#define BLYI_SIZE_TEXT 48

/* Writes at most BLYI_SIZE_TEXT characters and returns buf. */
const char *blyi_size_text(uint64_t bytes, char buf[BLYI_SIZE_TEXT]);

/* The short form alone, exact when the number divides evenly: "256 MiB", "2.3 MiB", "500 B". */
const char *blyi_size_short(uint64_t bytes, char buf[BLYI_SIZE_TEXT]);

/* E_PARSE: not a size, or above 2^63. */
bly_status blyi_size_parse(const char *text, uint64_t *bytes);
/* The same without a sentence: false where the former fails. */
bool blyi_size_try_parse(const char *text, uint64_t *bytes);

#endif
