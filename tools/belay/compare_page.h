/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_page.h - the rows of a comparison, and a page of them.
 */
#ifndef BELAY_COMPARE_PAGE_H
#define BELAY_COMPARE_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/size.h"
#include "compare_run.h"

struct compare_side {
    const char *alloc;
    struct compare_result result;
    uint64_t smallest; /* 0: not asked for */
    unsigned n_runs;
};

#define COMPARE_ROWS 12

struct compare_row {
    const char *name;
    char text[2][BLYI_SIZE_TEXT];
    char ratio[16];  /* second to first; "" where it says nothing */
    double value[2]; /* for drawings */
    bool is_size;
};

/* How many rows there are. */
size_t compare_rows(const struct compare_side sides[2], struct compare_row rows[COMPARE_ROWS]);
/* What to know of pools of the program's own, one or two sentences; false: it has none. */
bool compare_note(const struct compare_side sides[2], char *text, size_t size);
void compare_page(FILE *out, char *const *program, const struct compare_side sides[2]);

#endif
