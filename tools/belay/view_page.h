/* SPDX-License-Identifier: Apache-2.0
 *
 * view_page.h - a recording as one page of HTML that needs nothing else.
 */
#ifndef BELAY_VIEW_PAGE_H
#define BELAY_VIEW_PAGE_H

#include <stdio.h>
#include "observe/insight_cause.h"
#include "trace_input.h"

/* E_HOST_MEMORY. */
bly_status view_page(const struct blyi_insight *in, enum trace_format format,
                     const struct blyi_cause causes[BLYI_CAUSE_COUNT], FILE *out);

extern const char view_page_js[], view_table_js[], view_page_css[]; /* files of these names */

#endif
