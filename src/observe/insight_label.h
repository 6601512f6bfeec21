/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_label.h - by what a block is known: where it was made, what it is called, in which range.
 *
 * Labels are texts, so that two sites in one line of a program are one, and two files compare.
 *
 *   site   the line that asked; of a Python stack its innermost line of Python; else without the
 *          machinery of an allocator. Where no site is
 *          known, the name.
 *   name   its tag; else the name that the file tells (an operator); else its range; else its site
 *   range  "outer/inner"; "no range"
 */
#ifndef BLYI_INSIGHT_LABEL_H
#define BLYI_INSIGHT_LABEL_H

#include "observe/insight_history.h"

enum blyi_label_by { BLYI_BY_SITE, BLYI_BY_NAME, BLYI_BY_RANGE, BLYI_LABEL_BYS };

struct blyi_labels;

/* E_HOST_MEMORY. */
bly_status blyi_labels_make(const struct blyi_history *history, struct blyi_labels **out);
void blyi_labels_free(struct blyi_labels *labels);

/* Number of a life's label, from 0. */
uint32_t blyi_label_of(const struct blyi_labels *labels, const struct blyi_life *life,
                       enum blyi_label_by by);
/* Of what has a site alone: a stream, a refusal. */
uint32_t blyi_label_of_site(const struct blyi_labels *labels, uint32_t site, uint32_t stack);
const char *blyi_label_text(const struct blyi_labels *labels, uint32_t label);
size_t blyi_labels_count(const struct blyi_labels *labels);

#endif
