/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_write.h - the steps behind a point of a table.
 */
#ifndef BLYI_CKPT_WRITE_H
#define BLYI_CKPT_WRITE_H

#include "plan/ckpt_table.h"

/* A schedule of the whole chain for the curve's corner at or below `memory` (the chain's input
 * not counted), which there is. *ops is freed by blyi_host_free(). */
bly_status blyi_ckpt_write(const struct blyi_ckpt_table *table, enum blyi_ckpt_class class,
                           uint64_t memory, bly_ckpt_op **ops, size_t *n_ops);

#endif
