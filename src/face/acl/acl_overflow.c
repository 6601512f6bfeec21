/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_overflow.c - whether kernels left the range of floating point numbers.
 *
 * As on the card, a kernel is looked at when the device saturates and the stream's switch is on.
 * Software kernels themselves compute with infinity and NaN in either mode.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "face/acl/overflow.h"
#include "face/acl/stream_attr.h"
#include "npu/card.h"
#include "npu/memory.h"
#include "npu/overflow.h"

#define STATUS_SIZE 64u

static uint32_t saturation[BLYI_CARD_MAX]; /* atomic: aclrtFloatOverflowMode */

aclError bly_acl_aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)
{
    struct blyi_card *card;
    aclError error = blyi_acl_check_card(BLYI_ACL_CALL_aclrtSetDeviceSatMode, &card);
    if (error != ACL_SUCCESS)
        return error;
    if ((int)mode != ACL_RT_OVERFLOW_MODE_SATURATION && (int)mode != ACL_RT_OVERFLOW_MODE_INFNAN)
        return acl_reject(aclrtSetDeviceSatMode, ACL_ERROR_RT_PARAM_INVALID,
                          "mode %d is not 0 or 1", (int)mode);
    __atomic_store_n(&saturation[card->id], (uint32_t)mode, __ATOMIC_RELAXED);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode)
{
    struct blyi_card *card;
    if (mode == NULL)
        return acl_null(aclrtGetDeviceSatMode, "mode");
    aclError error = blyi_acl_check_card(BLYI_ACL_CALL_aclrtGetDeviceSatMode, &card);
    if (error == ACL_SUCCESS)
        *mode = (aclrtFloatOverflowMode)__atomic_load_n(&saturation[card->id], __ATOMIC_RELAXED);
    return error;
}

bool blyi_acl_looks_for_overflow(void *stream)
{
    struct blyi_card *card;
    if (likely(!blyi_acl_any_overflow_switch()))
        return false;
    return blyi_acl_overflow_switch(stream) && blyi_context_here_card(&card) == BLY_OK &&
           __atomic_load_n(&saturation[card->id], __ATOMIC_RELAXED) ==
               ACL_RT_OVERFLOW_MODE_SATURATION;
}

static aclError read_status(enum blyi_acl_call call, void *out, uint64_t size, void *stream,
                            uint32_t site)
{
    if (out == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "outputAddr is NULL");
    if (blyi_place_of(out, NULL) != BLYI_PLACE_CARD)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "outputAddr %p is no card memory",
                               out);
    return blyi_acl_result(call, blyi_overflow_read_async(out, size, stream, site));
}

aclError bly_acl_aclrtGetOverflowStatus(void *outputAddr, size_t outputSize, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    return read_status(BLYI_ACL_CALL_aclrtGetOverflowStatus, outputAddr, outputSize, stream, site);
}

aclError bly_acl_aclrtResetOverflowStatus(aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    return acl_result(aclrtResetOverflowStatus, blyi_overflow_clear_async(stream, site));
}

/* ── The same under older names, whose size is fixed ──────────────────────────────────────── */

static aclError read_fixed(enum blyi_acl_call call, void *out, uint64_t size, void *stream,
                           uint32_t site)
{
    if (out != NULL && size != STATUS_SIZE)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "outputSize %" PRIu64 " is not %u",
                               size, STATUS_SIZE);
    return read_status(call, out, size, stream, site);
}

aclError bly_acl_aclrtGetFloatOverflowStatus(void *outputAddr, uint64_t outputSize,
                                             aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    return read_fixed(BLYI_ACL_CALL_aclrtGetFloatOverflowStatus, outputAddr, outputSize, stream,
                      site);
}

aclError bly_acl_aclrtResetFloatOverflowStatus(aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    return acl_result(aclrtResetFloatOverflowStatus, blyi_overflow_clear_async(stream, site));
}

aclError bly_acl_aclrtNpuGetFloatOverFlowStatus(void *outputAddr, uint64_t outputSize,
                                                uint32_t checkMode, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    (void)checkMode; /* has no documented values */
    return read_fixed(BLYI_ACL_CALL_aclrtNpuGetFloatOverFlowStatus, outputAddr, outputSize, stream,
                      site);
}

aclError bly_acl_aclrtNpuClearFloatOverFlowStatus(uint32_t checkMode, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    (void)checkMode;
    return acl_result(aclrtNpuClearFloatOverFlowStatus, blyi_overflow_clear_async(stream, site));
}
