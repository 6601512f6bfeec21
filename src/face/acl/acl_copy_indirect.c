/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_copy_indirect.c - copies inside a device whose addresses are read when they run.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "npu/copy_indirect.h"

#define OFFSET_MAX UINT64_C(0xffffffffffff)
#define COPY_MAX   ((uint64_t)4 << 30) /* bytes of one descriptor's copy */

/* The list of kinds goes to 7; this one alone is built into the card. */
static aclError check_kind(enum blyi_acl_call call, aclrtMemcpyKind kind)
{
    if ((int)kind < ACL_MEMCPY_HOST_TO_HOST || (int)kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "kind %d is not in 0 .. 7",
                               (int)kind);
    if (kind != ACL_MEMCPY_INNER_DEVICE_TO_DEVICE)
        return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                               "kind %d: descriptors are for kind 6, inside a device", (int)kind);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t *descSize)
{
    if (descSize == NULL)
        return acl_null(aclrtGetMemcpyDescSize, "descSize");
    aclError error = check_kind(BLYI_ACL_CALL_aclrtGetMemcpyDescSize, kind);
    if (error == ACL_SUCCESS)
        *descSize = BLYI_COPY_DESC_SIZE;
    return error;
}

aclError bly_acl_aclrtSetMemcpyDesc(void *desc, aclrtMemcpyKind kind, void *srcAddr, void *dstAddr,
                                    size_t count, void *config)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtSetMemcpyDesc;
    if (desc == NULL)
        return acl_null(aclrtSetMemcpyDesc, "desc");
    if (srcAddr == NULL)
        return acl_null(aclrtSetMemcpyDesc, "srcAddr");
    if (dstAddr == NULL)
        return acl_null(aclrtSetMemcpyDesc, "dstAddr");
    if (count == 0)
        return acl_reject(aclrtSetMemcpyDesc, ACL_ERROR_INVALID_PARAM, "count is 0");
    if (config != NULL)
        return acl_reject(aclrtSetMemcpyDesc, ACL_ERROR_INVALID_PARAM, "config is not NULL");
    aclError error = check_kind(call, kind);
    if (error == ACL_SUCCESS && count > COPY_MAX)
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "count %zu is above %" PRIu64,
                                count, COPY_MAX);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, blyi_copy_desc_set(desc, srcAddr, dstAddr, count));
}

aclError bly_acl_aclrtMemcpyAsyncWithDesc(void *desc, aclrtMemcpyKind kind, aclrtStream stream)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemcpyAsyncWithDesc;
    uint32_t site = ACL_SITE();
    if (desc == NULL)
        return acl_null(aclrtMemcpyAsyncWithDesc, "desc");
    if (stream == NULL)
        return acl_null(aclrtMemcpyAsyncWithDesc, "stream");
    aclError error = check_kind(call, kind);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, blyi_copy_desc_async(desc, stream, site));
}

static aclError check_offsets(enum blyi_acl_call call, size_t dest_max, size_t dst_offset,
                              size_t count, size_t src_offset)
{
    if (dst_offset > OFFSET_MAX || src_offset > OFFSET_MAX)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "an offset, %zu of dst and %zu of src, is above %" PRIu64,
                               dst_offset, src_offset, OFFSET_MAX);
    if (dst_offset >= dest_max || count > dest_max - dst_offset)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "count %zu behind offset %zu is above destMax %zu", count,
                               dst_offset, dest_max);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtMemcpyAsyncWithOffset(void **dst, size_t destMax, size_t dstDataOffset,
                                            const void **src, size_t count, size_t srcDataOffset,
                                            aclrtMemcpyKind kind, aclrtStream stream)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemcpyAsyncWithOffset;
    if (count == 0)
        return ACL_SUCCESS;
    uint32_t site = ACL_SITE();
    if (kind != ACL_MEMCPY_INNER_DEVICE_TO_DEVICE)
        return acl_reject(aclrtMemcpyAsyncWithOffset, ACL_ERROR_RT_PARAM_INVALID,
                          "kind %d is not 6, inside a device", (int)kind);
    if (dst == NULL || src == NULL)
        return acl_reject(aclrtMemcpyAsyncWithOffset, ACL_ERROR_RT_PARAM_INVALID, "%s is NULL",
                          dst == NULL ? "dst" : "src");
    aclError error = check_offsets(call, destMax, dstDataOffset, count, srcDataOffset);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(
        call, blyi_copy_words_async(dst, dstDataOffset, src, srcDataOffset, count, stream, site));
}
