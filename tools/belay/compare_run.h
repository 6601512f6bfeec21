/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_run.h - one run of a program on a card of a given size, and what its report says.
 */
#ifndef BELAY_COMPARE_RUN_H
#define BELAY_COMPARE_RUN_H

#include <belay/base.h>
#include <stdbool.h>
#include <stdint.h>

struct compare_setup {
    const char *folder; /* for reports and output, exists */
    const char *alloc;  /* value of --alloc */
    uint64_t hbm;       /* bytes of the card; 0: as the environment says */
    char **program;     /* with arguments, NULL at the end */
    bool show;          /* its output goes where ours does; else into folder/ALLOC.out */
};

struct compare_result {
    int exit;                              /* its status; 128 + signal */
    bool reported;                         /* the rest is known */
    uint64_t peak_asked;                   /* of the process */
    uint64_t peak_backed, overhead, total; /* of card 0; backed: idle in pools, too */
    uint64_t allocs, frees, refused;
    uint64_t driver_calls; /* that took memory from the card, mapped it, or gave it back */
    uint64_t alloc_ns;     /* in calls that allocate or free */
    uint64_t left;         /* bytes live at exit */
    uint64_t findings;
    uint64_t pools; /* memory pools that were made, as far as the report has the last ones */
    double seconds;
};

/* E_SYSTEM, E_PARSE (its report): the sentence says what could not be done. A program that
 * fails or does not start is no error of ours. */
bly_status compare_run(const struct compare_setup *setup, struct compare_result *result);

/* The smallest card, in steps of 2 MiB, on which the program ends with status 0, between what it
 * needs in any case and `most`, with which it did. Takes for granted that more memory never does
 * worse. *n_runs is counted up. */
bly_status compare_smallest(const struct compare_setup *setup, uint64_t least, uint64_t most,
                            uint64_t *smallest, unsigned *n_runs);

#endif
