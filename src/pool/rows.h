/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.h - the figures of all pools, for reports (base/pool_rows.h).
 */
#ifndef BLYI_POOL_ROWS_OF_H
#define BLYI_POOL_ROWS_OF_H

#include <belay/pool.h>

void blyi_rows_offer(void);
/* A pool is about to end: its figures stay. */
void blyi_rows_keep(bly_pool *pool);

#endif
