/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_report.h - what `belay replay` found out, one row a policy, for people, scripts and
 * browsers.
 */
#ifndef BELAY_REPLAY_REPORT_H
#define BELAY_REPLAY_REPORT_H

#include <stdio.h>
#include "replay/replay.h"

#define REPLAY_COLUMNS 1000 /* of a curve: the most in each part of the trace */

struct replay_curve {
    uint64_t reserved[REPLAY_COLUMNS], live[REPLAY_COLUMNS];
};

struct replay_row {
    const struct blyi_replay_policy *policy;
    struct blyi_replay_setup setup;
    struct blyi_replay_result result; /* at the capacity of `setup` */
    bool has_least;                   /* of a run that completed, where it was asked for */
    uint64_t least;                   /* the smallest capacity */
    struct blyi_replay_result at_least;
    struct replay_curve *curve; /* NULL unless for a page */
};

struct replay_report {
    const char *path;
    const struct blyi_replay_trace *trace;
    const struct replay_row *rows;
    size_t n_rows;
    bool as_list; /* also of one row */
    bool timed;
};

/* Errors of `out` are the caller's to look at; false: no host memory. */
bool replay_json(const struct replay_report *report, FILE *out);
void replay_text(const struct replay_report *report, FILE *out);
void replay_page(const struct replay_report *report, FILE *out);

/* Reserved over live at their peaks; false: nothing was ever live. */
bool replay_ratio(const struct replay_report *report, uint64_t bytes, double *ratio);
/* Flushes of the run at the smallest capacity where that is known. */
uint64_t replay_flushes(const struct replay_row *row);

#endif
