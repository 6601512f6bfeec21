/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_text.h - lines, fields and numbers of a text that need not end with a zero, and a file
 * as such a text.
 */
#ifndef BLYI_CKPT_TEXT_H
#define BLYI_CKPT_TEXT_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_ckpt_text {
    const char *at;
    size_t length;
};

/* The next line, without its end (LF or CRLF); false at the end of the text. */
bool blyi_ckpt_text_line(struct blyi_ckpt_text *rest, struct blyi_ckpt_text *line);
/* The next field of a line of commas, without blanks around it; false for the last one. */
bool blyi_ckpt_text_field(struct blyi_ckpt_text *rest, struct blyi_ckpt_text *field);
size_t blyi_ckpt_text_count_fields(struct blyi_ckpt_text line);
/* The next word between blanks or commas; false when there is none. */
bool blyi_ckpt_text_word(struct blyi_ckpt_text *rest, struct blyi_ckpt_text *word);

bool blyi_ckpt_text_equal(struct blyi_ckpt_text text, const char *other);
bool blyi_ckpt_text_is_blank(struct blyi_ckpt_text text);
bool blyi_ckpt_text_is_printable(struct blyi_ckpt_text text); /* no control characters */

/* Digits alone; false: anything else, or 2^64 and above. */
bool blyi_ckpt_text_uint(struct blyi_ckpt_text text, uint64_t *value);
/* Digits, perhaps a point and up to three more digits: "2.5" is 2500. */
bool blyi_ckpt_text_thousandths(struct blyi_ckpt_text text, uint64_t *value);

/* Its length for "%.*s" in a sentence: cut where it is long or stops being printable. */
int blyi_ckpt_text_brief(struct blyi_ckpt_text text);

/* A whole file of at most `max` bytes; *at is freed by blyi_host_free().
 * E_IO, E_HOST_MEMORY; E_PARSE: it is longer. */
bly_status blyi_ckpt_text_read(const char *path, size_t max, char **at, size_t *length);

#endif
