/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_state.c - what a card reports of its health and modes, and hints that change nothing here.
 *
 *   overflow, saturation  the mode is kept; software kernels report no overflow, so status is 0
 *   memory faults         a software card has none: nothing is reported, nothing to be repaired
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

#define FAULTS_MAX 128

/* ── Overflow ─────────────────────────────────────────────────────────────────────────────── */

static uint32_t saturation[BLYI_CARD_MAX]; /* atomic: aclrtFloatOverflowMode */

aclError bly_acl_aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)
{
    struct blyi_context *context;
    aclError error = blyi_acl_check_context(BLYI_ACL_CALL_aclrtSetDeviceSatMode, &context);
    if (error != ACL_SUCCESS)
        return error;
    if ((int)mode != ACL_RT_OVERFLOW_MODE_SATURATION && (int)mode != ACL_RT_OVERFLOW_MODE_INFNAN)
        return acl_reject(aclrtSetDeviceSatMode, ACL_ERROR_RT_PARAM_INVALID,
                          "mode %d is not 0 or 1", (int)mode);
    __atomic_store_n(&saturation[blyi_context_card(context)], (uint32_t)mode, __ATOMIC_RELAXED);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetDeviceSatMode(aclrtFloatOverflowMode *mode)
{
    struct blyi_context *context;
    if (mode == NULL)
        return acl_null(aclrtGetDeviceSatMode, "mode");
    aclError error = blyi_acl_check_context(BLYI_ACL_CALL_aclrtGetDeviceSatMode, &context);
    if (error == ACL_SUCCESS)
        *mode = (aclrtFloatOverflowMode)__atomic_load_n(&saturation[blyi_context_card(context)],
                                                        __ATOMIC_RELAXED);
    return error;
}

aclError bly_acl_aclrtGetOverflowStatus(void *outputAddr, size_t outputSize, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (outputAddr == NULL)
        return acl_null(aclrtGetOverflowStatus, "outputAddr");
    if (outputSize == 0 || blyi_place_of(outputAddr, NULL) != BLYI_PLACE_CARD)
        return acl_reject(aclrtGetOverflowStatus, ACL_ERROR_RT_PARAM_INVALID,
                          "outputAddr %p, outputSize %zu: no card memory", outputAddr, outputSize);
    return acl_result(aclrtGetOverflowStatus,
                      blyi_set_async(outputAddr, 0, outputSize, stream, site));
}

aclError bly_acl_aclrtResetOverflowStatus(aclrtStream stream)
{
    return acl_result(aclrtResetOverflowStatus, blyi_stream_nop(stream));
}

/* ── Memory faults ────────────────────────────────────────────────────────────────────────── */

static aclError check_card(enum blyi_acl_call call, int32_t device)
{
    int card;
    return blyi_acl_check_device(call, device, ACL_ERROR_RT_INVALID_DEVICEID, &card);
}

aclError bly_acl_aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray,
                                    size_t arraySize, size_t *retSize)
{
    (void)arraySize; /* none are written */
    if (memUceInfoArray == NULL)
        return acl_null(aclrtGetMemUceInfo, "memUceInfoArray");
    if (retSize == NULL)
        return acl_null(aclrtGetMemUceInfo, "retSize");
    aclError error = check_card(BLYI_ACL_CALL_aclrtGetMemUceInfo, deviceId);
    if (error == ACL_SUCCESS)
        *retSize = 0;
    return error;
}

aclError bly_acl_aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray,
                                   size_t arraySize)
{
    static const size_t zeros[UCE_INFO_RESERVED_SIZE];
    if (memUceInfoArray == NULL)
        return acl_null(aclrtMemUceRepair, "memUceInfoArray");
    if (arraySize > FAULTS_MAX)
        return acl_reject(aclrtMemUceRepair, ACL_ERROR_INVALID_PARAM, "arraySize %zu is above %d",
                          arraySize, FAULTS_MAX);
    for (size_t i = 0; i < arraySize; i++)
        if (memcmp(memUceInfoArray[i].reserved, zeros, sizeof(zeros)) != 0)
            return acl_reject(aclrtMemUceRepair, ACL_ERROR_INVALID_PARAM,
                              "memUceInfoArray[%zu].reserved is not 0", i);
    aclError error = check_card(BLYI_ACL_CALL_aclrtMemUceRepair, deviceId);
    if (error == ACL_SUCCESS && arraySize != 0)
        error =
            acl_reject(aclrtMemUceRepair, ACL_ERROR_RT_PARAM_INVALID,
                       "%p is no faulty memory: a software card has none", memUceInfoArray[0].addr);
    return error;
}

aclError bly_acl_aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo)
{
    if (errorInfo == NULL)
        return acl_null(aclrtGetErrorVerbose, "errorInfo");
    aclError error = check_card(BLYI_ACL_CALL_aclrtGetErrorVerbose, deviceId);
    if (error != ACL_SUCCESS)
        return error;
    memset(errorInfo, 0, sizeof(*errorInfo));
    errorInfo->errorType = ACL_RT_NO_ERROR;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtRepairError(int32_t deviceId, const aclrtErrorInfo *errorInfo)
{
    if (errorInfo == NULL)
        return acl_null(aclrtRepairError, "errorInfo");
    aclError error = check_card(BLYI_ACL_CALL_aclrtRepairError, deviceId);
    if (error == ACL_SUCCESS && errorInfo->errorType != ACL_RT_NO_ERROR)
        error = acl_reject(aclrtRepairError, ACL_ERROR_RT_PARAM_INVALID,
                           "error type %d: nothing on a software card needs repair",
                           (int)errorInfo->errorType);
    return error;
}

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
