/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_top.h - the largest users of card memory by name, and where each asks from; of a whole
 * recording or of what lies between two marks in it.
 */
#ifndef BLYI_INSIGHT_TOP_H
#define BLYI_INSIGHT_TOP_H

#include "observe/insight_holder.h"

enum blyi_top_by { BLYI_TOP_PEAK, BLYI_TOP_TOTAL, BLYI_TOP_COUNT };

struct blyi_top_row {
    uint32_t name, site;     /* labels; site: of the most bytes of that name */
    struct blyi_amount peak; /* live at the peak of all cards */
    struct blyi_amount all;  /* live at the beginning, or made since */
    struct blyi_amount left; /* of those made since, live at the end */
};

struct blyi_top {
    struct blyi_top_row *rows; /* by falling peak.bytes, or another order */
    size_t n;
    struct blyi_amount peak, all; /* sums of the rows */
    uint32_t from, to, at_peak;   /* positions */
    uint64_t from_ns, to_ns;
};

/* Positions from .. to: what was live at `from` and what was born behind it up to `to`.
 * E_HOST_MEMORY. rows are freed by blyi_host_free(). */
bly_status blyi_top_make(const struct blyi_history *history, const struct blyi_labels *labels,
                         uint32_t from, uint32_t to, struct blyi_top *out);
void blyi_top_order(struct blyi_top *top, enum blyi_top_by by);
uint64_t blyi_top_weight(const struct blyi_top_row *row, enum blyi_top_by by);

#endif
