/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h - lines and fields of a text in memory, for the readers of buffers and traces.
 */
#ifndef BLYI_PLAN_TEXT_H
#define BLYI_PLAN_TEXT_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_text {
    const char *name; /* what sentences call it */
    const char *at, *end;
    size_t line; /* number of the line last taken, from 1 */
};

/* Part of the text, not terminated. */
struct blyi_slice {
    const char *at;
    size_t length;
};

/* Takes the next line that is neither empty nor a comment, without its end. False: no more. */
bool blyi_text_line(struct blyi_text *text, struct blyi_slice *line);
/* Cuts the next field off the line; false: there was none. A line has one more field than
 * separators. `rest` starts as the line and is {NULL, 0} behind the last field. */
bool blyi_slice_field(struct blyi_slice *rest, char separator, struct blyi_slice *field);
bool blyi_slice_is(struct blyi_slice slice, const char *word);
/* A decimal integer with an optional minus, blanks around it allowed. */
bool blyi_slice_int(struct blyi_slice slice, int64_t *value);
/* At most 40 bytes of a slice for a sentence, unprintable ones as '?'. Returns buf. */
const char *blyi_slice_show(struct blyi_slice slice, char buf[48]);

#endif
