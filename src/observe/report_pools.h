/* SPDX-License-Identifier: Apache-2.0
 *
 * report_pools.h - memory pools in reports.
 */
#ifndef BLYI_REPORT_POOLS_H
#define BLYI_REPORT_POOLS_H

#include <stdio.h>
#include "base/json.h"
#include "base/pool_rows.h"

void blyi_report_pools_text(const struct blyi_pool_row *rows, size_t n, FILE *out);
void blyi_report_pools_json(const struct blyi_pool_row *rows, size_t n, struct blyi_json *json);

#endif
