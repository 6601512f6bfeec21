/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_device.c - which device a thread works on, and waiting for all of its work.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "face/acl/pools.h"
#include "face/acl/state.h"
#include "face/acl/visible.h"

#define CALL(function) BLYI_ACL_CALL_##function

aclError bly_acl_aclrtGetDeviceCount(uint32_t *count)
{
    if (count == NULL)
        return acl_null(aclrtGetDeviceCount, "count");
    int n = blyi_visible_count();
    if (n == 0)
        return acl_reject(aclrtGetDeviceCount, ACL_ERROR_RT_NO_DEVICE,
                          "no device is visible (ASCEND_RT_VISIBLE_DEVICES is '%s')",
                          blyi_visible_text());
    *count = (uint32_t)n;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtSetDevice(int32_t deviceId)
{
    uint32_t site = ACL_SITE();
    int card;
    aclError error =
        blyi_acl_check_device(CALL(aclrtSetDevice), deviceId, ACL_ERROR_RT_INVALID_DEVICEID, &card);
    if (error != ACL_SUCCESS)
        return error;
    blyi_state_tell_device(deviceId, ACL_RT_DEVICE_STATE_SET_PRE);
    bly_status status = blyi_device_set(card, site);
    if (status == BLY_OK)
        blyi_state_tell_device(deviceId, ACL_RT_DEVICE_STATE_SET_POST);
    return acl_result(aclrtSetDevice, status);
}

static aclError device_reset(enum blyi_acl_call call, int32_t device, bool force)
{
    int card;
    aclError error = blyi_acl_check_device(call, device, ACL_ERROR_RT_INVALID_DEVICEID, &card);
    if (error != ACL_SUCCESS)
        return error;
    blyi_state_tell_device(device, ACL_RT_DEVICE_STATE_RESET_PRE);
    bly_status status = blyi_device_reset(card, force);
    if (status == BLY_OK)
        blyi_state_tell_device(device, ACL_RT_DEVICE_STATE_RESET_POST);
    return blyi_acl_result(call, status);
}

aclError bly_acl_aclrtResetDevice(int32_t deviceId)
{
    return device_reset(CALL(aclrtResetDevice), deviceId, false);
}

aclError bly_acl_aclrtResetDeviceForce(int32_t deviceId)
{
    return device_reset(CALL(aclrtResetDeviceForce), deviceId, true);
}

aclError bly_acl_aclrtGetDevice(int32_t *deviceId)
{
    if (deviceId == NULL)
        return acl_null(aclrtGetDevice, "deviceId");
    int card;
    bly_status status = blyi_device_get(&card);
    if (status != BLY_OK)
        return acl_result(aclrtGetDevice, status);
    *deviceId = blyi_visible_user(card);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtSynchronizeDevice(void)
{
    return blyi_acl_synced(BLYI_ACL_CALL_aclrtSynchronizeDevice, blyi_device_sync(0));
}

aclError bly_acl_aclrtSynchronizeDeviceWithTimeout(int32_t timeout)
{
    uint64_t timeout_ns;
    aclError error = blyi_acl_check_timeout(CALL(aclrtSynchronizeDeviceWithTimeout), timeout,
                                            ACL_ERROR_RT_PARAM_INVALID, &timeout_ns);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_synced(BLYI_ACL_CALL_aclrtSynchronizeDeviceWithTimeout,
                           blyi_device_sync(timeout_ns));
}

aclError bly_acl_aclrtGetRunMode(aclrtRunMode *runMode)
{
    if (runMode == NULL)
        return acl_null(aclrtGetRunMode, "runMode");
    *runMode = ACL_HOST;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active)
{
    if (flags != NULL)
        return acl_reject(aclrtGetPrimaryCtxState, ACL_ERROR_INVALID_PARAM,
                          "flags is reserved and not NULL");
    if (active == NULL)
        return acl_null(aclrtGetPrimaryCtxState, "active");
    int card;
    aclError error = blyi_acl_check_device(CALL(aclrtGetPrimaryCtxState), deviceId,
                                           ACL_ERROR_RT_INVALID_DEVICEID, &card);
    if (error != ACL_SUCCESS)
        return error;
    bool is_active;
    bly_status status = blyi_device_active(card, &is_active);
    if (status == BLY_OK)
        *active = is_active;
    return acl_result(aclrtGetPrimaryCtxState, status);
}
