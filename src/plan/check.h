/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h - are these buffers and options within the contract of belay/plan.h?
 */
#ifndef BLYI_PLAN_CHECK_H
#define BLYI_PLAN_CHECK_H

#include <belay/plan.h>

/* Errors as bly_plan(). ids  what sentences call the buffers; NULL: by position */
bly_status blyi_plan_check(const bly_plan_buffer *buffers, size_t n, const bly_plan_opts *opts,
                           char *const *ids);

#endif
