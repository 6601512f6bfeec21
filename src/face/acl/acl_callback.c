/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_callback.c - user code in stream order: report threads and host functions.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "npu/callback.h"

/* NULL is the default stream of the thread's context. */
static aclError find_stream(enum blyi_acl_call call, aclrtStream *stream)
{
    return *stream != NULL ? ACL_SUCCESS : blyi_acl_check_default(call, stream, NULL);
}

aclError bly_acl_aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    aclError error = find_stream(BLYI_ACL_CALL_aclrtSubscribeReport, &stream);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtSubscribeReport,
                      blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, threadId, stream));
}

aclError bly_acl_aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    aclError error = find_stream(BLYI_ACL_CALL_aclrtUnSubscribeReport, &stream);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtUnSubscribeReport,
                      blyi_callback_unsubscribe(BLYI_SERVES_CALLBACKS, threadId, stream));
}

aclError bly_acl_aclrtLaunchCallback(aclrtCallback fn, void *userData,
                                     aclrtCallbackBlockType blockType, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (fn == NULL)
        return acl_null(aclrtLaunchCallback, "fn");
    if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK)
        return acl_reject(aclrtLaunchCallback, ACL_ERROR_INVALID_PARAM,
                          "blockType %d is not 0 or 1", (int)blockType);
    return acl_result(
        aclrtLaunchCallback,
        blyi_callback_launch(fn, userData, blockType == ACL_CALLBACK_BLOCK, stream, site));
}

aclError bly_acl_aclrtProcessReport(int32_t timeout)
{
    uint64_t timeout_ns;
    aclError error = blyi_acl_check_timeout(BLYI_ACL_CALL_aclrtProcessReport, timeout,
                                            ACL_ERROR_INVALID_PARAM, &timeout_ns);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtProcessReport, blyi_callback_process(BLYI_SERVES_CALLBACKS, timeout_ns));
}

aclError bly_acl_aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args)
{
    uint32_t site = ACL_SITE();
    if (fn == NULL)
        return acl_null(aclrtLaunchHostFunc, "fn");
    return acl_result(aclrtLaunchHostFunc, blyi_callback_host_func(stream, fn, args, site));
}

/* ── A thread of the program's for host functions ─────────────────────────────────────────── */

aclError bly_acl_aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream)
{
    if (exeStream == NULL)
        return acl_reject(aclrtSubscribeHostFunc, ACL_ERROR_RT_PARAM_INVALID, "exeStream is NULL");
    return acl_result(aclrtSubscribeHostFunc,
                      blyi_callback_subscribe(BLYI_SERVES_HOST_FUNCS, hostFuncThreadId, exeStream));
}

aclError bly_acl_aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream)
{
    if (exeStream == NULL)
        return acl_reject(aclrtUnSubscribeHostFunc, ACL_ERROR_RT_PARAM_INVALID,
                          "exeStream is NULL");
    return acl_result(
        aclrtUnSubscribeHostFunc,
        blyi_callback_unsubscribe(BLYI_SERVES_HOST_FUNCS, hostFuncThreadId, exeStream));
}

aclError bly_acl_aclrtProcessHostFunc(int32_t timeout)
{
    uint64_t timeout_ns;
    aclError error = blyi_acl_check_timeout(BLYI_ACL_CALL_aclrtProcessHostFunc, timeout,
                                            ACL_ERROR_RT_PARAM_INVALID, &timeout_ns);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtProcessHostFunc,
                      blyi_callback_process(BLYI_SERVES_HOST_FUNCS, timeout_ns));
}
