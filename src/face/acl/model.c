/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c - the model, read once.
 *
 * Lock: `lock` (rank FACE) guards the reading; nothing of the card is called under it.
 */
#include "face/acl/model.h"

#include <string.h>

#include "base/lock.h"
#include "base/option.h"

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);
static struct blyi_model loaded;
static bool is_loaded;

bly_status blyi_acl_model(const struct blyi_model **model)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&lock);
    if (!is_loaded) {
        status = blyi_model_load(blyi_option_text(BLYI_OPT_MODEL), &loaded);
        is_loaded = status == BLY_OK;
    }
    blyi_lock_drop(&lock);
    if (status == BLY_OK)
        *model = &loaded;
    return status;
}

bool blyi_acl_model_is_ddr(const struct blyi_model *model)
{
    static const char prefix[] = "Ascend310";
    return strncmp(model->soc, prefix, sizeof(prefix) - 1) == 0;
}
