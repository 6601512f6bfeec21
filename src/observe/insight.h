/* SPDX-License-Identifier: Apache-2.0
 *
 * insight.h - all that can be told of a recording, computed once for every command.
 */
#ifndef BLYI_INSIGHT_H
#define BLYI_INSIGHT_H

#include "observe/insight_fragment.h"
#include "observe/insight_growth.h"
#include "observe/insight_holder.h"
#include "observe/insight_label.h"
#include "observe/insight_latency.h"
#include "observe/insight_peak.h"
#include "observe/insight_use.h"
#include "observe/insight_waste.h"

/* What one line of a program made of streams, events or notifies. */
struct blyi_thing_row {
    enum blyi_thing_kind kind;
    uint32_t label;
    uint64_t made, live, reset;
    uint64_t oldest_ns; /* when the first of the live ones was made */
};

/* Handles that reach no address at the end. */
struct blyi_orphans {
    uint64_t count, bytes; /* backed */
    uint32_t label;        /* of the first */
    bool several;          /* more than one site */
};

struct blyi_insight {
    struct blyi_trace *trace;
    const struct blyi_trace_info *info;
    struct blyi_history history;
    struct blyi_labels *labels;
    struct blyi_peak peaks[BLYI_PEAK_COUNT];
    struct blyi_holdings sites, names, ranges; /* first: at the peak of all cards; second: end */
    struct blyi_waste waste;
    struct blyi_cycles cycles;              /* of all cards */
    struct blyi_growth growth, pool_growth; /* of live and of reserved bytes */
    struct blyi_holdings growers; /* by site; first: the valley that the growth begins at, or the
                                     first; second: the last valley. Empty without cycles */
    struct blyi_ramp ramps[BLYI_RAMPS];
    size_t n_ramps;
    struct blyi_uses uses;
    struct blyi_latencies latencies;
    struct blyi_fragments fragments; /* of all cards, at the end */
    struct blyi_thing_row *things;   /* by falling `live`, then `made` */
    size_t n_things;
    struct blyi_orphans orphans;
    struct blyi_amount *orphans_by_label; /* of each site; as asked */
    bool has_pool, is_over; /* is_over: the program ended, so that what is live was not freed */
};

/* Keeps the trace, which must stay open. E_HOST_MEMORY, E_IO. */
bly_status blyi_insight_make(struct blyi_trace *trace, struct blyi_insight **out);
void blyi_insight_free(struct blyi_insight *insight); /* NULL is allowed */

/* A card that the file tells of; NULL: it does not. */
const struct blyi_trace_card *blyi_insight_card(const struct blyi_insight *insight, uint8_t card);

/* What was left at the end, or taken back by a reset at it: a leak where is_over. */
struct blyi_amount blyi_insight_left(const struct blyi_holding *holding);

#endif
