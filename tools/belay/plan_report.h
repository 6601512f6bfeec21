/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_report.h - what `belay plan` says about a plan.
 */
#ifndef BELAY_PLAN_REPORT_H
#define BELAY_PLAN_REPORT_H

#include "plan_step.h"
#include "stock.h"

struct plan_notes {
    const struct plan_step *step; /* NULL: the whole input was planned */
    bool has_stock;               /* a trace: what an allocator would have done until then */
    struct stock stock;
};

bool plan_json(const bly_plan_result *result, const struct plan_notes *notes);
void plan_text(const bly_plan_input *input, const bly_plan_result *result,
               const struct plan_notes *notes);

#endif
