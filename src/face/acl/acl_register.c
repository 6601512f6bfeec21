/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_register.c - host memory that the program registers for devices. The device address is the
 * host address (docs/design/vmm.md).
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "npu/card.h"
#include "npu/pinned.h"
#include "npu/registered.h"
#include "npu/runtime.h"

#define MAPPED   0x2u
#define IOMEMORY 0x4u
#define READONLY 0x8u
#define PINNED   0x10000000u

static uint32_t translate(uint32_t flags)
{
    return (flags & MAPPED ? BLYI_REGISTER_MAPPED : 0) | (flags & IOMEMORY ? BLYI_REGISTER_IO : 0) |
           (flags & READONLY ? BLYI_REGISTER_READONLY : 0) |
           (flags & PINNED ? BLYI_REGISTER_PINNED : 0);
}

static aclError add(enum blyi_acl_call call, void *ptr, uint64_t size, uint32_t flags,
                    uint32_t site)
{
    struct blyi_context *context;
    aclError error = blyi_acl_check_context(call, &context);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, blyi_registered_add(ptr, size, translate(flags), site));
}

aclError bly_acl_aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type,
                                   void **devPtr)
{
    uint32_t site = ACL_SITE();
    if (ptr == NULL || devPtr == NULL)
        return acl_reject(aclrtHostRegister, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          ptr == NULL ? "ptr" : "devPtr");
    if (size == 0)
        return acl_reject(aclrtHostRegister, ACL_ERROR_INVALID_PARAM, "size is 0");
    if ((uint32_t)type & ~(IOMEMORY | READONLY))
        return acl_reject(aclrtHostRegister, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                          "type 0x%x: mapped is 0, and only 4 and 8 may be added", (unsigned)type);
    aclError error = add(BLYI_ACL_CALL_aclrtHostRegister, ptr, size, (uint32_t)type | MAPPED, site);
    if (error == ACL_SUCCESS)
        *devPtr = ptr;
    return error;
}

aclError bly_acl_aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
{
    uint32_t site = ACL_SITE();
    if (ptr == NULL)
        return acl_null(aclrtHostRegisterV2, "ptr");
    if (size == 0)
        return acl_reject(aclrtHostRegisterV2, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (flag == 0 || (flag & ~(MAPPED | IOMEMORY | READONLY | PINNED)) != 0)
        return acl_reject(aclrtHostRegisterV2, ACL_ERROR_RT_PARAM_INVALID,
                          "flag 0x%" PRIx32 " is not of mapped 0x2, io memory 0x4, read-only 0x8, "
                          "pinned 0x10000000",
                          flag);
    return add(BLYI_ACL_CALL_aclrtHostRegisterV2, ptr, size, flag, site);
}

aclError bly_acl_aclrtHostUnregister(void *ptr)
{
    uint32_t site = ACL_SITE();
    if (ptr == NULL)
        return acl_null(aclrtHostUnregister, "ptr");
    return acl_result(aclrtHostUnregister, blyi_registered_remove(ptr, site));
}

/* Memory of aclrtMallocHost has one address too. */
aclError bly_acl_aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag)
{
    if (pHost == NULL || pDevice == NULL)
        return acl_reject(aclrtHostGetDevicePointer, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          pHost == NULL ? "pHost" : "pDevice");
    if (flag != 0)
        return acl_reject(aclrtHostGetDevicePointer, ACL_ERROR_INVALID_PARAM,
                          "flag %" PRIu32 " is not 0", flag);
    bly_status status = blyi_runtime_check();
    if (status != BLY_OK)
        return acl_result(aclrtHostGetDevicePointer, status);
    struct blyi_registered range;
    struct blyi_pinned_block block;
    bool found = blyi_registered_find((uintptr_t)pHost, &range);
    if (!found && !blyi_pinned_find(pHost, &block))
        return acl_reject(aclrtHostGetDevicePointer, ACL_ERROR_RT_PARAM_INVALID,
                          "pHost %p is not registered (aclrtHostRegisterV2)", pHost);
    if (found && !(range.flags & BLYI_REGISTER_MAPPED))
        return acl_reject(aclrtHostGetDevicePointer, ACL_ERROR_RT_PARAM_INVALID,
                          "pHost %p is registered without being mapped (flag 0x2)", pHost);
    *pDevice = pHost;
    return ACL_SUCCESS;
}

/* What a model of ours has for an engine can follow any address of the process. */
aclError bly_acl_aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType,
                                             aclrtHostMemMapCapability *capabilities)
{
    if (capabilities == NULL)
        return acl_null(aclrtHostMemMapCapabilities, "capabilities");
    int card;
    aclError error = blyi_acl_check_device(BLYI_ACL_CALL_aclrtHostMemMapCapabilities, deviceId,
                                           ACL_ERROR_RT_PARAM_INVALID, &card);
    if (error != ACL_SUCCESS)
        return error;
    switch (hacType) {
    case ACL_RT_HAC_TYPE_AICPU:
    case ACL_RT_HAC_TYPE_AIC:
    case ACL_RT_HAC_TYPE_AIV:
    case ACL_RT_HAC_TYPE_PCIEDMA:
    case ACL_RT_HAC_TYPE_SDMA:
    case ACL_RT_HAC_TYPE_DVPP:
        *capabilities = ACL_RT_HOST_MEM_MAP_SUPPORTED;
        return ACL_SUCCESS;
    case ACL_RT_HAC_TYPE_STARS:
    case ACL_RT_HAC_TYPE_RDMA:
    case ACL_RT_HAC_TYPE_UDMA:
    case ACL_RT_HAC_TYPE_CCU:
        *capabilities = ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED;
        return ACL_SUCCESS;
    }
    return acl_reject(aclrtHostMemMapCapabilities, ACL_ERROR_RT_PARAM_INVALID,
                      "hacType %d is not in 0 .. 9", (int)hacType);
}
