/* SPDX-License-Identifier: Apache-2.0
 *
 * view_data.h - what the page of a recording draws, made small enough for a browser: curves by
 * buckets, the largest blocks.
 */
#ifndef BELAY_VIEW_DATA_H
#define BELAY_VIEW_DATA_H

#include <stdio.h>
#include "observe/insight.h"
#include "trace_input.h"

#define VIEW_BUCKETS 1500
#define VIEW_BLOCKS  100000 /* drawn; of more, those with the largest areas */
#define VIEW_STACK   11     /* holders with a colour of their own */
#define VIEW_MARKS   200

/* Writes the object that view_page.js reads. E_HOST_MEMORY. */
bly_status view_write_data(const struct blyi_insight *in, enum trace_format format, FILE *out);
/* A JSON string that may stand in a script of a page, whatever the bytes are. */
void view_write_string(FILE *out, const char *text);

/* Where a block is drawn: its address, with what nobody ever used left out; or, where the file has
 * no addresses, where best fit would have put it. */
#define VIEW_NOWHERE UINT64_MAX
struct view_places {
    uint64_t *y; /* of each life */
    uint64_t height;
    bool packed;
};
bly_status view_places_make(const struct blyi_insight *in, bool packed, struct view_places *out);

#endif
