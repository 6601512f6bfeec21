/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_host.c - pinned host memory.
 */
#include "face/acl/check.h"
#include "face/acl/config.h"
#include "npu/card.h"
#include "npu/pinned.h"

static aclError host_alloc(enum blyi_acl_call call, void **out, uint64_t size, uint16_t module,
                           uint32_t site)
{
    uint64_t rounded;
    struct blyi_context *context;
    aclError error = blyi_acl_check_size(call, size, false, &rounded);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_context(call, &context);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_limit(call, rounded);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, blyi_pinned_alloc(size, rounded, site, module, out));
}

aclError bly_acl_aclrtMallocHost(void **hostPtr, size_t size)
{
    uint32_t site = ACL_SITE();
    if (hostPtr == NULL)
        return acl_null(aclrtMallocHost, "hostPtr");
    return host_alloc(BLYI_ACL_CALL_aclrtMallocHost, hostPtr, size, BLYI_MODULE_APPLICATION, site);
}

aclError bly_acl_aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMallocHostWithCfg;
    uint32_t site = ACL_SITE();
    if (ptr == NULL)
        return acl_null(aclrtMallocHostWithCfg, "ptr");
    if (size == 0)
        return acl_reject(aclrtMallocHostWithCfg, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (cfg != NULL && cfg->attrs == NULL)
        return acl_null(aclrtMallocHostWithCfg, "cfg->attrs");
    struct blyi_config config;
    aclError error = blyi_config_read(call, cfg, &config);
    if (error != ACL_SUCCESS)
        return error;
    if (config.has_device)
        return acl_reject(aclrtMallocHostWithCfg, ACL_ERROR_RT_PARAM_INVALID,
                          "attribute ACL_RT_MEM_ATTR_DEVICE_ID is for device memory");
    /* VA_FLAG asks for one address on host and device: pinned memory has no other here. */
    return host_alloc(call, ptr, size, config.module, site);
}

aclError bly_acl_aclrtFreeHost(void *hostPtr)
{
    uint32_t site = ACL_SITE();
    if (hostPtr == NULL)
        return acl_null(aclrtFreeHost, "hostPtr");
    return acl_result(aclrtFreeHost, blyi_pinned_free(hostPtr, site));
}

aclError bly_acl_aclrtFreeHostWithDevSync(void *hostPtr)
{
    uint32_t site = ACL_SITE();
    if (hostPtr == NULL)
        return acl_null(aclrtFreeHostWithDevSync, "hostPtr");
    bly_status status = blyi_device_sync(0);
    if (status == BLY_OK)
        status = blyi_pinned_free(hostPtr, site);
    return acl_result(aclrtFreeHostWithDevSync, status);
}
