/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h - the model of this process's cards, for questions that need no card to be open.
 */
#ifndef BLYI_ACL_MODEL_H
#define BLYI_ACL_MODEL_H

#include <stdbool.h>
#include "npu/model.h"

/* The model that option MODEL names, read at the first call that succeeds; it lives for ever.
 * Errors are those of blyi_model_load(). [any] */
bly_status blyi_acl_model(const struct blyi_model **model);
/* Memory of the model is DDR, not HBM. */
bool blyi_acl_model_is_ddr(const struct blyi_model *model);

#endif
