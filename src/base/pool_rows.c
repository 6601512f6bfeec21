/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool_rows.h"

static blyi_pool_rows_fn *offered;

void blyi_pool_rows_offer(blyi_pool_rows_fn *fn)
{
    __atomic_store_n(&offered, fn, __ATOMIC_RELEASE);
}

size_t blyi_pool_rows(struct blyi_pool_row *rows, size_t max, bool quick)
{
    blyi_pool_rows_fn *fn = __atomic_load_n(&offered, __ATOMIC_ACQUIRE);
    return fn != NULL ? fn(rows, max, quick) : 0;
}
