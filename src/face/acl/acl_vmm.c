/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_vmm.c - reserved addresses: reserve, map, rights. acl_physical.c has the memory.
 *
 * A bad range or handle is the driver's "bad input", 107000; an address that was not mapped is
 * its 507899 at aclrtUnmapMem, and a grant that contradicts an earlier one at aclrtMemSetAccess.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "npu/card.h"
#include "npu/mapping.h"
#include "npu/physical.h"
#include "npu/runtime.h"
#include "npu/vmm.h"

static aclError reserve(enum blyi_acl_call call, void **out, size_t size, size_t alignment,
                        void *expect, uint64_t flags, uint32_t kind, uint32_t site)
{
    if (out == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "virPtr is NULL");
    if (size == 0)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (flags > 1)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "flags %" PRIu64 " is not 0 or 1",
                               flags);
    if (alignment != 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "alignment %zu is not 0",
                               alignment);
    uintptr_t address;
    bly_status status = blyi_runtime_enter();
    if (status == BLY_OK)
        status = blyi_vmm_reserve(size, (uintptr_t)expect, kind, site, &address);
    if (status != BLY_OK)
        return blyi_acl_fail(call, status);
    *out = (void *)address; /* NOLINT(performance-no-int-to-ptr): an address of ours */
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
                                        void *expectPtr, uint64_t flags)
{
    return reserve(BLYI_ACL_CALL_aclrtReserveMemAddress, virPtr, size, alignment, expectPtr, flags,
                   0, ACL_SITE());
}

aclError bly_acl_aclrtReserveMemAddressNoUCMemory(void **virPtr, size_t size, size_t alignment,
                                                  void *expectPtr, uint64_t flags)
{
    return reserve(BLYI_ACL_CALL_aclrtReserveMemAddressNoUCMemory, virPtr, size, alignment,
                   expectPtr, flags, BLYI_RESERVE_GIB, ACL_SITE());
}

aclError bly_acl_aclrtReleaseMemAddress(void *virPtr)
{
    uint32_t site = ACL_SITE();
    if (virPtr == NULL)
        return acl_null(aclrtReleaseMemAddress, "virPtr");
    bly_status status = blyi_vmm_check_own((uintptr_t)virPtr);
    if (status == BLY_OK)
        status = blyi_vmm_release((uintptr_t)virPtr, site);
    return acl_result(aclrtReleaseMemAddress, status);
}

static aclError map(enum blyi_acl_call call, void *address, size_t size, size_t offset,
                    aclrtDrvMemHandle handle, uint64_t flags, bool access, uint32_t site)
{
    if (address == NULL || handle == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                               address == NULL ? "virPtr" : "handle");
    if (size == 0)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (flags != 0)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "flags %" PRIu64 " is not 0", flags);
    bly_status status = blyi_vmm_check_own((uintptr_t)address);
    if (status == BLY_OK)
        status = blyi_mapping_make((uintptr_t)address, size, offset, handle, access, site);
    return blyi_acl_result(call, status);
}

aclError bly_acl_aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                             uint64_t flags)
{
    return map(BLYI_ACL_CALL_aclrtMapMem, virPtr, size, offset, handle, flags, true, ACL_SITE());
}

aclError bly_acl_aclrtMemMapNoAccess(void *virPtr, size_t size, size_t offset,
                                     aclrtDrvMemHandle handle, uint64_t flags)
{
    return map(BLYI_ACL_CALL_aclrtMemMapNoAccess, virPtr, size, offset, handle, flags, false,
               ACL_SITE());
}

aclError bly_acl_aclrtUnmapMem(void *virPtr)
{
    uint32_t site = ACL_SITE();
    if (virPtr == NULL)
        return acl_null(aclrtUnmapMem, "virPtr");
    bly_status status = blyi_vmm_check_own((uintptr_t)virPtr);
    if (status == BLY_OK)
        status = blyi_mapping_remove((uintptr_t)virPtr, site);
    return acl_result(aclrtUnmapMem, status);
}

/* The card, or BLYI_LOCATION_HOST, that a location names. */
static aclError read_location(enum blyi_acl_call call, const aclrtMemLocation *location, int *out)
{
    if (location->type == ACL_MEM_LOCATION_TYPE_HOST) {
        *out = BLYI_LOCATION_HOST;
        return ACL_SUCCESS;
    }
    if (location->type == ACL_MEM_LOCATION_TYPE_DEVICE)
        return blyi_acl_check_device(call, location->id, ACL_ERROR_RT_PARAM_INVALID, out);
    return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                           "location type %d is neither host (0) nor device (1)",
                           (int)location->type);
}

aclError bly_acl_aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc,
                                   size_t count)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemSetAccess;
    if (virPtr == NULL || desc == NULL)
        return acl_reject(aclrtMemSetAccess, ACL_ERROR_RT_PARAM_INVALID, "%s is NULL",
                          virPtr == NULL ? "virPtr" : "desc");
    if (size == 0 || count == 0)
        return acl_reject(aclrtMemSetAccess, ACL_ERROR_RT_PARAM_INVALID, "%s is 0",
                          size == 0 ? "size" : "count");
    for (size_t i = 0; i < count; i++) {
        int location = 0;
        if (desc[i].flags != ACL_RT_MEM_ACCESS_FLAGS_READWRITE)
            return acl_reject(aclrtMemSetAccess, ACL_ERROR_RT_PARAM_INVALID,
                              "desc[%zu].flags %d is not ACL_RT_MEM_ACCESS_FLAGS_READWRITE (3)", i,
                              (int)desc[i].flags);
        aclError error = read_location(call, &desc[i].location, &location);
        if (error != ACL_SUCCESS)
            return error;
        bly_status status = blyi_vmm_check_own((uintptr_t)virPtr);
        if (status == BLY_OK)
            status = blyi_mapping_grant((uintptr_t)virPtr, size, location);
        if (status != BLY_OK)
            return blyi_acl_fail(call, status);
    }
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtMemGetAccess(void *virPtr, aclrtMemLocation *location, uint64_t *flag)
{
    if (virPtr == NULL || location == NULL || flag == NULL)
        return acl_reject(aclrtMemGetAccess, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          virPtr == NULL     ? "virPtr"
                          : location == NULL ? "location"
                                             : "flag");
    int at = 0;
    bool granted;
    aclError error = read_location(BLYI_ACL_CALL_aclrtMemGetAccess, location, &at);
    if (error != ACL_SUCCESS)
        return error;
    bly_status status = blyi_mapping_access((uintptr_t)virPtr, at, &granted);
    if (status != BLY_OK)
        return acl_result(aclrtMemGetAccess, status);
    *flag = granted ? ACL_RT_MEM_ACCESS_FLAGS_READWRITE : ACL_RT_MEM_ACCESS_FLAGS_NONE;
    return ACL_SUCCESS;
}

/* The memory mapped at the source is mapped at the destination too, for the current card. Both
 * links lead to the same memory here. */
aclError bly_acl_aclrtMemMapSelectedLink(void *virPtrDst, size_t size, void *virPtrSrc,
                                         uint32_t linkIdx)
{
    uint32_t site = ACL_SITE();
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemMapSelectedLink;
    if (virPtrDst == NULL || virPtrSrc == NULL)
        return acl_reject(aclrtMemMapSelectedLink, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          virPtrDst == NULL ? "virPtrDst" : "virPtrSrc");
    if (size == 0)
        return acl_reject(aclrtMemMapSelectedLink, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (linkIdx > ACL_RT_MEM_LINK_IDX_1)
        return acl_reject(aclrtMemMapSelectedLink, ACL_ERROR_INVALID_PARAM,
                          "linkIdx %" PRIu32 " is not 0 or 1", linkIdx);
    struct blyi_card *card;
    void *handle;
    aclError error = blyi_acl_check_card(call, &card);
    if (error != ACL_SUCCESS)
        return error;
    bly_status status = blyi_vmm_check_own((uintptr_t)virPtrDst);
    if (status == BLY_OK)
        status = blyi_vmm_check_own((uintptr_t)virPtrSrc);
    if (status == BLY_OK)
        status = blyi_physical_retain((uintptr_t)virPtrSrc, site, &handle);
    if (status != BLY_OK)
        return blyi_acl_fail(call, status);
    status = blyi_mapping_make((uintptr_t)virPtrDst, size, 0, handle, false, site);
    if (status == BLY_OK) {
        status = blyi_mapping_grant((uintptr_t)virPtrDst, size, card->id);
        if (status != BLY_OK)
            (void)blyi_mapping_remove((uintptr_t)virPtrDst, site);
    }
    error = blyi_acl_result(call, status);
    (void)blyi_physical_release(handle, site); /* the reference of retain */
    return error;
}
