/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h - the model of this process's cards, for questions that need no card to be open.
 */
#ifndef BLYI_ACL_MODEL_H
#define BLYI_ACL_MODEL_H

#include <stdbool.h>
#include "npu/model.h"

/* NULL: option MODEL names none that can be read (the thread's sentence says why). [any] */
const struct blyi_model *blyi_acl_model(void);
/* Memory of the model is DDR, not HBM. */
bool blyi_acl_model_is_ddr(const struct blyi_model *model);

#endif
