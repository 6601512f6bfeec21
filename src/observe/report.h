/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - the memory of a process, told to people (text) and to scripts (JSON).
 *
 * The JSON names are a contract (docs/report.md): fields are added, never renamed.
 */
#ifndef BLYI_REPORT_H
#define BLYI_REPORT_H

#include <belay/base.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include "base/pool_rows.h"
#include "observe/account.h"
#include "observe/finding.h"
#include "observe/symbolise.h"

/* What one line of the program held, all cards together. */
struct blyi_holder {
    uint32_t site;
    struct blyi_tally at_peak, live, all;
};

/* Return addresses of one line of the program count as one site here. */
struct blyi_report {
    char program[PATH_MAX];
    int pid;
    struct blyi_account account;
    struct blyi_tally at_peak;   /* all card memory at the process's peak */
    struct blyi_holder *holders; /* by falling bytes at the peak; only of card memory */
    size_t n_holders;
    struct blyi_pool_row *pools; /* by rising number */
    size_t n_pools;
    struct blyi_finding *checked; /* what the checker found; part of what follows */
    size_t n_checked;
    struct blyi_finding *findings;
    size_t n_findings;
    uint32_t *sites; /* rising; sources[i] belongs to sites[i] */
    struct blyi_source *sources;
    size_t n_sites;
};

/* E_HOST_MEMORY, E_TIMEOUT. */
bly_status blyi_report_make(struct blyi_report *out);
void blyi_report_fini(struct blyi_report *report);
/* No card was opened, no memory asked for. */
bool blyi_report_is_unused(const struct blyi_report *report);
const struct blyi_source *blyi_report_source(const struct blyi_report *report, uint32_t site);

void blyi_report_write_text(const struct blyi_report *report, FILE *out);
void blyi_report_write_json(const struct blyi_report *report, FILE *out);

#endif
