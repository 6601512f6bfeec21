/* SPDX-License-Identifier: Apache-2.0
 *
 * read.h - what the readers of buffers share: arrays that grow.
 */
#ifndef BLYI_PLAN_READ_H
#define BLYI_PLAN_READ_H

#include <belay/plan.h>
#include "plan/text.h"

/* Starts zeroed. While it grows, gaps and ids are positions; finishing makes pointers. */
struct blyi_reader {
    bly_plan_buffer *buffers;
    size_t *id_at; /* of each buffer, in names */
    int32_t *streams;
    size_t n, room;
    bly_plan_gap *gaps;
    size_t n_gaps, gaps_room;
    char *names;
    size_t names_used, names_room;
};

/* Adds a buffer whose n_gaps gaps were the last to be added; it is on stream 0. */
bly_status blyi_reader_add(struct blyi_reader *r, const bly_plan_buffer *buffer,
                           struct blyi_slice id);
bly_status blyi_reader_add_gap(struct blyi_reader *r, const bly_plan_gap *gap);
/* Hands everything to *input on BLY_OK; frees it otherwise, and returns status. */
bly_status blyi_reader_finish(struct blyi_reader *r, bly_status status, bool is_trace,
                              bly_plan_input *input);

/* The rows behind the header line of a TSV trace. */
bly_status blyi_read_trace(struct blyi_reader *r, struct blyi_text *text, struct blyi_slice header);

#endif
