/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_page.h - a plan as a page of HTML that needs nothing else.
 */
#ifndef BELAY_PLAN_PAGE_H
#define BELAY_PLAN_PAGE_H

#include <belay/plan.h>
#include <stdio.h>

/* Draws the packing before (each buffer where a first-fit allocator that does not know the
 * future would put it) and after, under the curve of live bytes. False: out of memory. */
int plan_page(FILE *out, const char *title, const bly_plan_input *input,
              const bly_plan_result *result);

/* Offsets of first fit in order of birth, and their peak; NULL: out of memory. Freed by free(). */
uint64_t *plan_first_fit(const bly_plan_input *input, uint64_t *peak);

#endif
