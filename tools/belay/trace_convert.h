/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_convert.h - a trace in the formats of other tools.
 *
 * Each export reads the whole trace and writes to `out`, whose errors the caller looks at.
 * E_HOST_MEMORY; E_IO: the trace cannot be read; E_INVALID: the sentence says what must be chosen.
 */
#ifndef BELAY_TRACE_CONVERT_H
#define BELAY_TRACE_CONVERT_H

#include <stdio.h>
#include "observe/trace_reader.h"

#define EXPORT_ANY_CARD (-1) /* the only one that has blocks */

enum export_weight { WEIGHT_PEAK, WEIGHT_LEAKED, WEIGHT_TOTAL, WEIGHT_COUNT };

struct export_opts {
    int card;                  /* of formats that know one memory */
    enum export_weight weight; /* of folded stacks */
};

typedef bly_status export_fn(struct blyi_trace *trace, const struct export_opts *opts, FILE *out);
export_fn export_tsv, export_rmm, export_snapshot, export_chrome, export_folded, export_memscope;

/* What the exports share. */
bly_status export_no_memory(const struct blyi_trace *trace);
/* The card of opts, or the only one with blocks. E_INVALID: there are several. Rewinds. */
bly_status export_find_card(struct blyi_trace *trace, const struct export_opts *opts, int *card);
/* Nanoseconds since the start of the trace; never falls. */
struct export_clock {
    uint64_t base, last;
};
struct export_clock export_clock_of(const struct blyi_trace *trace);
uint64_t export_since(struct export_clock *clock, uint64_t time_ns);

#endif
