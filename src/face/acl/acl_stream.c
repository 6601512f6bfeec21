/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_stream.c - streams: making, destroying, waiting, asking.
 */
#include <inttypes.h>

#include "face/acl/allocators.h"
#include "face/acl/check.h"
#include "face/acl/limits.h"
#include "face/acl/pools.h"
#include "face/acl/stream_attr.h"
#include "face/acl/stream_config.h"
#include "npu/card.h"
#include "npu/stream.h"
#include "npu/tally.h"

aclError bly_acl_aclrtCreateStream(aclrtStream *stream)
{
    uint32_t site = ACL_SITE();
    if (stream == NULL)
        return acl_null(aclrtCreateStream, "stream");
    return acl_result(aclrtCreateStream, blyi_stream_create(0, 0, site, stream));
}

aclError bly_acl_aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
    uint32_t site = ACL_SITE();
    if (stream == NULL)
        return acl_null(aclrtCreateStreamWithConfig, "stream");
    return acl_result(aclrtCreateStreamWithConfig,
                      blyi_stream_create(priority, flag, site, stream));
}

aclError bly_acl_aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle)
{
    uint32_t site = ACL_SITE();
    if (stream == NULL)
        return acl_null(aclrtCreateStreamV2, "stream");
    aclrtStreamConfigHandle config = {0};
    if (handle != NULL && !blyi_stream_config_read(handle, &config))
        return acl_reject(aclrtCreateStreamV2, ACL_ERROR_INVALID_PARAM,
                          "handle %p is not from aclrtCreateStreamConfigHandle",
                          (const void *)handle);
    return acl_result(aclrtCreateStreamV2,
                      blyi_stream_create(config.priority, (uint32_t)config.flag, site, stream));
}

static aclError stream_destroy(enum blyi_acl_call call, void *stream, bool force)
{
    if (stream == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "stream is NULL");
    bly_status status = blyi_stream_destroy(stream, force);
    if (status == BLY_OK) {
        blyi_allocators_forget(stream);
        blyi_stream_attr_forget(stream);
        blyi_limits_forget_stream(stream);
    }
    return blyi_acl_result(call, status);
}

aclError bly_acl_aclrtDestroyStream(aclrtStream stream)
{
    return stream_destroy(BLYI_ACL_CALL_aclrtDestroyStream, stream, false);
}

aclError bly_acl_aclrtDestroyStreamForce(aclrtStream stream)
{
    return stream_destroy(BLYI_ACL_CALL_aclrtDestroyStreamForce, stream, true);
}

aclError bly_acl_aclrtSynchronizeStream(aclrtStream stream)
{
    return blyi_acl_synced(BLYI_ACL_CALL_aclrtSynchronizeStream, blyi_stream_sync(stream, 0));
}

aclError bly_acl_aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)
{
    uint64_t timeout_ns;
    aclError error = blyi_acl_check_timeout(BLYI_ACL_CALL_aclrtSynchronizeStreamWithTimeout,
                                            timeout, ACL_ERROR_RT_PARAM_INVALID, &timeout_ns);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_synced(BLYI_ACL_CALL_aclrtSynchronizeStreamWithTimeout,
                           blyi_stream_sync(stream, timeout_ns));
}

aclError bly_acl_aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status)
{
    if (status == NULL)
        return acl_null(aclrtStreamQuery, "status");
    bool complete;
    bly_status result = blyi_stream_query(stream, &complete);
    if (result == BLY_OK)
        *status = complete ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return acl_result(aclrtStreamQuery, result);
}

aclError bly_acl_aclrtStreamGetId(aclrtStream stream, int32_t *streamId)
{
    if (streamId == NULL)
        return acl_null(aclrtStreamGetId, "streamId");
    return acl_result(aclrtStreamGetId, blyi_stream_id(stream, streamId));
}

aclError bly_acl_aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority)
{
    if (priority == NULL)
        return acl_null(aclrtStreamGetPriority, "priority");
    return acl_result(aclrtStreamGetPriority, blyi_stream_priority(stream, priority));
}

aclError bly_acl_aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags)
{
    if (flags == NULL)
        return acl_null(aclrtStreamGetFlags, "flags");
    return acl_result(aclrtStreamGetFlags, blyi_stream_flags(stream, flags));
}

aclError bly_acl_aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority,
                                                   int32_t *greatestPriority)
{
    if (leastPriority != NULL)
        *leastPriority = 7;
    if (greatestPriority != NULL)
        *greatestPriority = 0;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetStreamAvailableNum(uint32_t *streamCount)
{
    if (streamCount == NULL)
        return acl_null(aclrtGetStreamAvailableNum, "streamCount");
    struct blyi_card *card;
    aclError error = blyi_acl_check_card(BLYI_ACL_CALL_aclrtGetStreamAvailableNum, &card);
    if (error != ACL_SUCCESS)
        return error;
    uint64_t used = blyi_tally_used(card->id, BLYI_LIMIT_STREAMS);
    *streamCount = used < card->model.streams ? (uint32_t)(card->model.streams - used) : 0;
    return ACL_SUCCESS;
}
