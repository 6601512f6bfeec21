/* SPDX-License-Identifier: Apache-2.0
 *
 * config.c - reads aclrtMallocConfig.
 */
#include "face/acl/config.h"

#include "npu/card.h"

/* More attributes than kinds times this is not a list that somebody wrote. */
#define ATTRS_MAX 1024

aclError blyi_config_read(enum blyi_acl_call call, const aclrtMallocConfig *cfg,
                          struct blyi_config *out)
{
    struct blyi_config config = {.module = BLYI_MODULE_APPLICATION};
    size_t n = cfg == NULL ? 0 : cfg->numAttrs;
    if (n > 0 && cfg->attrs == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "cfg->attrs is NULL, numAttrs is %zu",
                               n);
    if (n > ATTRS_MAX)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "cfg->numAttrs %zu is above %d", n,
                               ATTRS_MAX);
    for (size_t i = 0; i < n; i++) {
        const aclrtMallocAttribute *attribute = &cfg->attrs[i];
        switch ((int)attribute->attr) {
        case ACL_RT_MEM_ATTR_RSV:
            break;
        case ACL_RT_MEM_ATTR_MODULE_ID:
            config.module = attribute->value.moduleId;
            break;
        case ACL_RT_MEM_ATTR_DEVICE_ID:
            config.has_device = true;
            config.device = attribute->value.deviceId;
            break;
        case ACL_RT_MEM_ATTR_VA_FLAG:
            config.has_va_flag = true;
            config.va_flag = attribute->value.vaFlag;
            break;
        default:
            return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                   "cfg->attrs[%zu].attr is %d, not an attribute", i,
                                   (int)attribute->attr);
        }
    }
    *out = config;
    return ACL_SUCCESS;
}
