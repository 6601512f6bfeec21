/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c - the model, read once.
 */
#include "face/acl/model.h"

#include <pthread.h>
#include <string.h>

#include "base/option.h"

static struct blyi_model model;
static bool is_loaded;

static void load(void)
{
    is_loaded = blyi_model_load(blyi_option_text(BLYI_OPT_MODEL), &model) == BLY_OK;
}

const struct blyi_model *blyi_acl_model(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return is_loaded ? &model : NULL;
}

bool blyi_acl_model_is_ddr(const struct blyi_model *of)
{
    static const char prefix[] = "Ascend310";
    return strncmp(of->soc, prefix, sizeof(prefix) - 1) == 0;
}
