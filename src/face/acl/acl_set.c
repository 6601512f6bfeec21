/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_set.c - fills with bytes and with 32-bit words, at once and in stream order.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "face/acl/staging.h"
#include "npu/copy.h"
#include "npu/memory.h"
#include "npu/stream.h"

/* Engines reach the card and pinned host memory. Only aclrtMemset, which writes in the caller's
 * thread, also takes other host memory: the documentation calls that undefined, the vendor's driver
 * does it, and the vendor's samples clear variables of theirs so. */
static aclError check_place(enum blyi_acl_call call, const void *address, aclError code)
{
    if (blyi_place_of(address, NULL) == BLYI_PLACE_HOST)
        return blyi_acl_reject(call, code, "%p is neither card memory nor pinned host memory",
                               address);
    return ACL_SUCCESS;
}

/* Everything of a byte fill but the order; count is not 0. */
static aclError check_set(enum blyi_acl_call call, const void *address, size_t max, size_t count)
{
    struct blyi_context *context;
    if (address == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    aclError error = blyi_acl_check_context(call, &context);
    if (error == ACL_SUCCESS && count > max)
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "count %zu is above maxCount %zu",
                                count, max);
    return error;
}

aclError bly_acl_aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
    if (count == 0)
        return ACL_SUCCESS;
    aclError error = check_set(BLYI_ACL_CALL_aclrtMemset, devPtr, maxCount, count);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtMemset,
                      blyi_set_now_at(devPtr, (uint8_t)value, count, ACL_SITE_IF_TOLD()));
}

aclError bly_acl_aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
                                  aclrtStream stream)
{
    if (count == 0)
        return ACL_SUCCESS;
    uint32_t site = ACL_SITE();
    aclError error = check_set(BLYI_ACL_CALL_aclrtMemsetAsync, devPtr, maxCount, count);
    if (error == ACL_SUCCESS)
        error = check_place(BLYI_ACL_CALL_aclrtMemsetAsync, devPtr, ACL_ERROR_RT_PARAM_INVALID);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtMemsetAsync,
                      blyi_set_async(devPtr, (uint8_t)value, count, stream, site));
}

/* Words: count is not 0. */
static aclError check_words(enum blyi_acl_call call, const void *address, size_t size, size_t count)
{
    struct blyi_context *context;
    if (address == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    if ((uintptr_t)address % sizeof(uint32_t) != 0)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "ptr %p is not a multiple of 4",
                               address);
    aclError error = blyi_acl_check_context(call, &context);
    if (error == ACL_SUCCESS)
        error = check_place(call, address, ACL_ERROR_INVALID_PARAM);
    if (error == ACL_SUCCESS && count > size / sizeof(uint32_t))
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                "%zu words are above memSize %zu bytes", count, size);
    return error;
}

aclError bly_acl_aclrtMemsetD32(void *ptr, size_t memSize, uint32_t value, size_t N)
{
    if (N == 0)
        return ACL_SUCCESS;
    aclError error = check_words(BLYI_ACL_CALL_aclrtMemsetD32, ptr, memSize, N);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtMemsetD32, blyi_staging_set32_now(ptr, value, N));
}

aclError bly_acl_aclrtMemsetD32Async(void *ptr, size_t memSize, uint32_t value, size_t N,
                                     aclrtStream stream)
{
    if (N == 0)
        return ACL_SUCCESS;
    uint32_t site = ACL_SITE();
    aclError error = check_words(BLYI_ACL_CALL_aclrtMemsetD32Async, ptr, memSize, N);
    if (error != ACL_SUCCESS)
        return error;
    bly_status status;
    if (blyi_place_of(ptr, NULL) == BLYI_PLACE_CARD) {
        status = blyi_staging_set32(ptr, value, N, stream, site);
    } else { /* host memory: complete when the call returns */
        status = blyi_stream_sync(stream, 0);
        if (status == BLY_OK)
            status = blyi_staging_set32_now(ptr, value, N);
    }
    return acl_result(aclrtMemsetD32Async, status);
}
