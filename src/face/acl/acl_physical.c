/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_physical.c - handles of physical memory.
 *
 *   attribute           pages    contiguous   on a device   on the host
 *   ..._NORMAL, _HUGE   2 MiB    P2P only     yes, not DDR  yes
 *   ..._HUGE1G          1 GiB    P2P only     yes           207000
 *
 * Which attribute a handle tells is rebuilt from its pages: the memory's kind (HBM; "MEM" where it
 * is DDR, and for the host) and the page size; peer-to-peer memory is ACL_MEM_P2P_*.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "face/acl/alloc_pool.h"
#include "face/acl/check.h"
#include "face/acl/model.h"
#include "face/acl/visible.h"
#include "npu/card.h"
#include "npu/physical.h"
#include "npu/vmm.h"
#include "npu/runtime.h"

#define IS_DDR   1u
#define IS_GIANT 2u
#define IS_P2P   4u
#define IS_VALID 8u

static const uint8_t attributes[] = {
    [ACL_MEM_NORMAL] = IS_VALID,
    [ACL_MEM_HUGE] = IS_VALID,
    [ACL_MEM_HUGE1G] = IS_VALID | IS_GIANT,
    [ACL_MEM_P2P_NORMAL] = IS_VALID | IS_P2P,
    [ACL_MEM_P2P_HUGE] = IS_VALID | IS_P2P,
    [ACL_MEM_P2P_HUGE1G] = IS_VALID | IS_P2P | IS_GIANT,
    [ACL_HBM_MEM_NORMAL] = IS_VALID,
    [ACL_HBM_MEM_HUGE] = IS_VALID,
    [ACL_HBM_MEM_HUGE1G] = IS_VALID | IS_GIANT,
    [ACL_DDR_MEM_NORMAL] = IS_VALID | IS_DDR,
    [ACL_DDR_MEM_HUGE] = IS_VALID | IS_DDR,
    [ACL_DDR_MEM_P2P_NORMAL] = IS_VALID | IS_DDR | IS_P2P,
    [ACL_DDR_MEM_P2P_HUGE] = IS_VALID | IS_DDR | IS_P2P,
};

static uint8_t attribute_of(const aclrtPhysicalMemProp *prop)
{
    return (unsigned)prop->memAttr < BLYI_COUNT(attributes) ? attributes[prop->memAttr] : 0;
}

static aclError check_attribute(enum blyi_acl_call call, const aclrtPhysicalMemProp *prop)
{
    uint8_t attribute = attribute_of(prop);
    if (attribute == 0)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "memAttr %d is not one that physical memory has",
                               (int)prop->memAttr);
    if ((attribute & IS_DDR) && prop->location.type == ACL_MEM_LOCATION_TYPE_DEVICE)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "memAttr %d (DDR) is for the host, the location is a device",
                               (int)prop->memAttr);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
                                                  aclrtMemGranularityOptions option,
                                                  size_t *granularity)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemGetAllocationGranularity;
    if (prop == NULL || granularity == NULL)
        return acl_reject(aclrtMemGetAllocationGranularity, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          prop == NULL ? "prop" : "granularity");
    aclError error = check_attribute(call, prop);
    if (error != ACL_SUCCESS)
        return error;
    if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM &&
        option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return acl_reject(aclrtMemGetAllocationGranularity, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                          "option %d is neither minimum (0) nor recommended (1)", (int)option);
    *granularity = attribute_of(prop) & IS_GIANT ? GiB : BLYI_FRAME_SIZE;
    return ACL_SUCCESS;
}

static bool node_exists(uint32_t node)
{
    char path[64];
    snprintf(path, sizeof(path), "/sys/devices/system/node/node%" PRIu32, node);
    return node == 0 || access(path, F_OK) == 0;
}

/* Card and node of a location. */
static aclError read_location(enum blyi_acl_call call, const aclrtPhysicalMemProp *prop,
                              struct blyi_physical_request *request)
{
    uint32_t id = prop->location.id;
    struct blyi_context *context;
    aclError error;
    switch (prop->location.type) {
    case ACL_MEM_LOCATION_TYPE_DEVICE:
        return blyi_acl_open_device(call, id, ACL_ERROR_RT_INVALID_DEVICEID, &request->card);
    case ACL_MEM_LOCATION_TYPE_HOST:
        if (id != 0)
            return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                                   "location id %" PRIu32 " of host memory is not 0", id);
        return ACL_SUCCESS;
    case ACL_MEM_LOCATION_TYPE_HOST_NUMA:
        error = blyi_acl_check_context(call, &context);
        if (error == ACL_SUCCESS && !node_exists(id))
            error = blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                                    "the host has no memory node %" PRIu32, id);
        request->on_node = true;
        request->numa = id;
        return error;
    default:
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "location type %d is neither device, host nor host node",
                               (int)prop->location.type);
    }
}

static aclError check_prop(enum blyi_acl_call call, const aclrtPhysicalMemProp *prop)
{
    if (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "handleType %d is not 0",
                               (int)prop->handleType);
    if (prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "allocationType %d is not pinned (0)",
                               (int)prop->allocationType);
    aclrtMemLocationType type = prop->location.type;
    if (type != ACL_MEM_LOCATION_TYPE_DEVICE && type != ACL_MEM_LOCATION_TYPE_HOST &&
        type != ACL_MEM_LOCATION_TYPE_HOST_NUMA)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "location type %d is neither device, host nor host node", (int)type);
    return check_attribute(call, prop);
}

aclError bly_acl_aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
                                     const aclrtPhysicalMemProp *prop, uint64_t flags)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMallocPhysical;
    struct blyi_physical_request request = {.size = size, .site = ACL_SITE()};
    if (handle == NULL || prop == NULL)
        return acl_reject(aclrtMallocPhysical, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          handle == NULL ? "handle" : "prop");
    if (size == 0)
        return acl_reject(aclrtMallocPhysical, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (flags != 0)
        return acl_reject(aclrtMallocPhysical, ACL_ERROR_INVALID_PARAM,
                          "flags %" PRIu64 " is not 0", flags);
    aclError error = check_prop(call, prop);
    if (error == ACL_SUCCESS && prop->reserve != 0)
        error = acl_reject(aclrtMallocPhysical, ACL_ERROR_RT_PARAM_INVALID,
                           "prop->reserve %" PRIu64 " is not 0", prop->reserve);
    if (error == ACL_SUCCESS)
        error = acl_result(aclrtMallocPhysical, blyi_runtime_enter());
    if (error == ACL_SUCCESS)
        error = read_location(call, prop, &request);
    if (error != ACL_SUCCESS)
        return error;
    request.page_kind = attribute_of(prop) & IS_GIANT ? BLYI_PAGE_GIANT : BLYI_PAGE_HUGE;
    request.contiguous = (attribute_of(prop) & IS_P2P) != 0;
    return acl_result(aclrtMallocPhysical, blyi_physical_create(&request, handle));
}

aclError bly_acl_aclrtFreePhysical(aclrtDrvMemHandle handle)
{
    uint32_t site = ACL_SITE();
    if (handle == NULL)
        return acl_null(aclrtFreePhysical, "handle");
    return acl_result(aclrtFreePhysical, blyi_physical_release(handle, site));
}

aclError bly_acl_aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle)
{
    if (virPtr == NULL || handle == NULL)
        return acl_reject(aclrtMemRetainAllocationHandle, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          virPtr == NULL ? "virPtr" : "handle");
    uint32_t site = ACL_SITE();
    bly_status status = blyi_alloc_pool_check_export(virPtr);
    if (status == BLY_OK)
        status = blyi_physical_retain((uintptr_t)virPtr, site, handle);
    return acl_result(aclrtMemRetainAllocationHandle, status);
}

static aclrtMemAttr told_attribute(const struct blyi_physical_info *info)
{
    bool giant = info->page_kind == BLYI_PAGE_GIANT;
    if (info->contiguous)
        return giant ? ACL_MEM_P2P_HUGE1G : ACL_MEM_P2P_HUGE;
    const struct blyi_card *card = blyi_card_get(info->card);
    if (card == NULL || blyi_acl_model_is_ddr(&card->model))
        return giant ? ACL_MEM_HUGE1G : ACL_MEM_HUGE;
    return giant ? ACL_HBM_MEM_HUGE1G : ACL_HBM_MEM_HUGE;
}

aclError bly_acl_aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
                                                           aclrtPhysicalMemProp *prop)
{
    if (handle == NULL || prop == NULL)
        return acl_reject(aclrtMemGetAllocationPropertiesFromHandle, ACL_ERROR_INVALID_PARAM,
                          "%s is NULL", handle == NULL ? "handle" : "prop");
    struct blyi_physical_info info;
    bly_status status = blyi_physical_info(handle, &info);
    if (status != BLY_OK)
        return acl_result(aclrtMemGetAllocationPropertiesFromHandle, status);
    aclrtPhysicalMemProp told = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = told_attribute(&info)};
    if (info.card >= 0) {
        told.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
        told.location.id = blyi_visible_place(info.card, info.for_card);
    } else {
        told.location.type =
            info.on_node ? ACL_MEM_LOCATION_TYPE_HOST_NUMA : ACL_MEM_LOCATION_TYPE_HOST;
        told.location.id = info.numa;
    }
    *prop = told;
    return ACL_SUCCESS;
}

/* SIO and HCCS are links of A3, the others of 950; none of the models is one. */
aclError bly_acl_aclrtMemMapSetLink(aclrtDrvMemHandle handle, aclrtMemLinkType adviceLink)
{
    if (handle == NULL)
        return acl_null(aclrtMemMapSetLink, "handle");
    struct blyi_physical_info info;
    bly_status status = blyi_physical_info(handle, &info);
    if (status != BLY_OK)
        return acl_result(aclrtMemMapSetLink, status);
    return acl_reject(aclrtMemMapSetLink, ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED,
                      "link type %d: cards of this model have no choice of links", (int)adviceLink);
}
