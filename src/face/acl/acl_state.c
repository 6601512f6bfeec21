/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_state.c - what a card reports of its health and modes, and hints that change nothing here.
 *
 *   cache operations      checked; data is where it belongs whatever the cache does
 */
#include <inttypes.h>
#include <string.h>

#include "face/acl/check.h"
#include "face/acl/named.h"
#include "face/acl/state.h"
#include "npu/card.h"
#include "npu/copy.h"
#include "npu/memory.h"
#include "npu/queue.h"
#include "npu/stream.h"

/* ── Cache, engines, links ────────────────────────────────────────────────────────────────── */

aclError bly_acl_aclrtCmoAsync(void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream)
{
    if (src == NULL)
        return acl_null(aclrtCmoAsync, "src");
    if (size == 0)
        return acl_reject(aclrtCmoAsync, ACL_ERROR_INVALID_PARAM, "size is 0");
    if ((int)cmoType < ACL_RT_CMO_TYPE_PREFETCH || (int)cmoType > ACL_RT_CMO_TYPE_FLUSH)
        return acl_reject(aclrtCmoAsync, ACL_ERROR_RT_PARAM_INVALID, "cmoType %d is not in 0 .. 3",
                          (int)cmoType);
    if (cmoType != ACL_RT_CMO_TYPE_PREFETCH)
        return acl_reject(aclrtCmoAsync, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                          "cmoType %d: the model can prefetch only", (int)cmoType);
    return acl_result(aclrtCmoAsync, blyi_stream_nop(stream));
}

aclError bly_acl_aclrtDeviceL2CacheFlush(void *rsv)
{
    struct blyi_context *context;
    if (rsv != NULL)
        return acl_reject(aclrtDeviceL2CacheFlush, ACL_ERROR_INVALID_PARAM, "rsv is not NULL");
    return blyi_acl_check_context(BLYI_ACL_CALL_aclrtDeviceL2CacheFlush, &context);
}

aclError bly_acl_aclrtSetTsDevice(aclrtTsId tsId)
{
    if ((int)tsId != ACL_TS_ID_AICORE && (int)tsId != ACL_TS_ID_AIVECTOR)
        return acl_reject(aclrtSetTsDevice, ACL_ERROR_INVALID_PARAM, "tsId %d is not 0 or 1",
                          (int)tsId);
    return ACL_SUCCESS; /* both are one scheduler here */
}

aclError bly_acl_aclrtGetThreadLastTaskId(uint32_t *taskId)
{
    if (taskId == NULL)
        return acl_null(aclrtGetThreadLastTaskId, "taskId");
    *taskId = blyi_queue_last_task();
    return ACL_SUCCESS;
}

/* ── Devices that come and go ─────────────────────────────────────────────────────────────── */

static struct blyi_named_list device_callbacks;

void blyi_state_tell_device(int32_t device, aclrtDeviceState state)
{
    struct blyi_named_list list;
    blyi_named_copy(&device_callbacks, &list);
    for (size_t i = 0; i < list.n; i++)
        ((aclrtDeviceStateCallback)list.rows[i].fn)(device, state, list.rows[i].args);
}

aclError bly_acl_aclrtRegDeviceStateCallback(const char *regName, aclrtDeviceStateCallback callback,
                                             void *args)
{
    return blyi_named_set(BLYI_ACL_CALL_aclrtRegDeviceStateCallback, &device_callbacks, regName,
                          (void (*)(void))callback, args);
}
