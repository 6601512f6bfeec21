/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_holder.h - who holds how much, at two moments and altogether.
 */
#ifndef BLYI_INSIGHT_HOLDER_H
#define BLYI_INSIGHT_HOLDER_H

#include "observe/insight_label.h"
#include "observe/insight_peak.h"

struct blyi_amount {
    uint64_t count, bytes; /* as asked */
};

struct blyi_holding {
    uint32_t label;
    struct blyi_amount first, second; /* live at either moment */
    struct blyi_amount all;           /* ever made while recording, or there at its start */
    struct blyi_amount reset;         /* taken back by a device reset */
    uint64_t backed_first;
    uint64_t saving; /* the most that its 32 bytes cost at one moment */
};

struct blyi_holdings {
    struct blyi_holding *rows; /* by falling bytes at `first`, then `all`, then first to appear */
    size_t n;
};

struct blyi_holding_query {
    enum blyi_label_by by;
    uint8_t card;           /* 0 .. 63, BLYI_NO_CARD, BLYI_ALL_CARDS */
    uint32_t first, second; /* positions */
};

/* E_HOST_MEMORY. rows are freed by blyi_host_free(). */
bly_status blyi_holdings_make(const struct blyi_history *history, const struct blyi_labels *labels,
                              const struct blyi_holding_query *query, struct blyi_holdings *out);

#endif
