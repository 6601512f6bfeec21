/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_abort.c - failure modes, ending work by force, and who hears of streams and aborts.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "face/acl/named.h"
#include "face/acl/stream_attr.h"
#include "npu/abort.h"
#include "npu/stream.h"

#define ABORT_MS_MAX 2160000u /* 36 minutes */

static struct blyi_named_list stream_callbacks, abort_callbacks;

aclError blyi_acl_set_failure_mode(enum blyi_acl_call call, void *stream, uint64_t mode,
                                   bool default_too)
{
    void *default_stream;
    aclError error = blyi_acl_check_default(call, &default_stream, NULL);
    if (error != ACL_SUCCESS)
        return error;
    if (!default_too && (stream == NULL || stream == default_stream))
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "a default stream does not take its failure mode as an attribute");
    if (mode > ACL_STOP_ON_FAILURE)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "failure mode %" PRIu64 " is not 0 or 1", mode);
    return blyi_acl_result(call, blyi_stream_set_failure_mode(stream, (uint32_t)mode));
}

aclError bly_acl_aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
    return blyi_acl_set_failure_mode(BLYI_ACL_CALL_aclrtSetStreamFailureMode, stream, mode, true);
}

aclError bly_acl_aclrtStreamAbort(aclrtStream stream)
{
    if (stream == NULL)
        return acl_null(aclrtStreamAbort, "stream");
    return acl_result(aclrtStreamAbort, blyi_stream_abort(stream));
}

aclError bly_acl_aclrtStreamStop(aclrtStream stream)
{
    if (stream == NULL)
        return acl_null(aclrtStreamStop, "stream");
    return acl_result(aclrtStreamStop, blyi_stream_stop(stream));
}

aclError bly_acl_aclrtPersistentTaskClean(aclrtStream stream)
{
    if (stream == NULL)
        return acl_null(aclrtPersistentTaskClean, "stream");
    return acl_result(aclrtPersistentTaskClean, blyi_stream_clean(stream));
}

/* ── Callbacks ────────────────────────────────────────────────────────────────────────────── */

typedef void (*plain_fn)(void);

static void tell_of_stream(void *stream, bool ends)
{
    struct blyi_named_list list;
    blyi_named_copy(&stream_callbacks, &list);
    for (size_t i = 0; i < list.n; i++)
        ((aclrtStreamStateCallback)list.rows[i].fn)(
            stream, ends ? ACL_RT_STREAM_STATE_DESTROY_PRE : ACL_RT_STREAM_STATE_CREATE_POST,
            list.rows[i].args);
}

aclError bly_acl_aclrtRegStreamStateCallback(const char *regName, aclrtStreamStateCallback callback,
                                             void *args)
{
    aclError error = blyi_named_set(BLYI_ACL_CALL_aclrtRegStreamStateCallback, &stream_callbacks,
                                    regName, (plain_fn)callback, args);
    if (error == ACL_SUCCESS)
        blyi_stream_listen(tell_of_stream);
    return error;
}

aclError bly_acl_aclrtSetDeviceTaskAbortCallback(const char *regName,
                                                 aclrtDeviceTaskAbortCallback callback, void *args)
{
    return blyi_named_set(BLYI_ACL_CALL_aclrtSetDeviceTaskAbortCallback, &abort_callbacks, regName,
                          (plain_fn)callback, args);
}

/* Every callback is called; whether all were content. */
static bool tell_of_abort(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout)
{
    struct blyi_named_list list;
    bool content = true;
    blyi_named_copy(&abort_callbacks, &list);
    for (size_t i = 0; i < list.n; i++)
        if (((aclrtDeviceTaskAbortCallback)list.rows[i].fn)(device, stage, timeout,
                                                            list.rows[i].args) != 0)
            content = false;
    return content;
}

aclError bly_acl_aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout)
{
    int card;
    aclError error = blyi_acl_check_device(BLYI_ACL_CALL_aclrtDeviceTaskAbort, deviceId,
                                           ACL_ERROR_RT_INVALID_DEVICEID, &card);
    if (error != ACL_SUCCESS)
        return error;
    if (timeout > ABORT_MS_MAX)
        return acl_reject(aclrtDeviceTaskAbort, ACL_ERROR_RT_PARAM_INVALID,
                          "timeout %" PRIu32 " ms is above %u", timeout, ABORT_MS_MAX);
    if (!tell_of_abort(deviceId, ACL_RT_DEVICE_TASK_ABORT_PRE, timeout))
        return acl_reject(aclrtDeviceTaskAbort, ACL_ERROR_RT_TASK_ABORT_STOP,
                          "a callback before the abort failed: nothing was aborted");
    bly_status status = blyi_card_abort(card, (uint64_t)timeout * 1000000u);
    if (status != BLY_OK)
        return acl_result(aclrtDeviceTaskAbort, status);
    if (!tell_of_abort(deviceId, ACL_RT_DEVICE_TASK_ABORT_POST, timeout))
        return acl_reject(aclrtDeviceTaskAbort, ACL_ERROR_RT_TASK_ABORT_STOP,
                          "a callback behind the abort failed");
    return ACL_SUCCESS;
}
