/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_graph_capture.c - capturing streams: modes, task groups, conditions.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "npu/graph.h"

/* Modes, states and kinds of conditions are numbered as ours. */

aclError bly_acl_aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode)
{
    uint32_t site = ACL_SITE();
    if (stream == NULL)
        return acl_null(aclmdlRICaptureBegin, "stream");
    return acl_result(aclmdlRICaptureBegin,
                      blyi_capture_begin(stream, NULL, (enum blyi_capture_mode)mode, site));
}

aclError bly_acl_aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI modelRI,
                                               aclmdlRICaptureMode mode)
{
    uint32_t site = ACL_SITE();
    if (stream == NULL || modelRI == NULL)
        return acl_reject(aclmdlRICaptureToModelRIBegin, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          stream == NULL ? "stream" : "modelRI");
    return acl_result(aclmdlRICaptureToModelRIBegin,
                      blyi_capture_begin(stream, modelRI, (enum blyi_capture_mode)mode, site));
}

aclError bly_acl_aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI)
{
    if (stream == NULL)
        return acl_null(aclmdlRICaptureEnd, "stream");
    return acl_result(aclmdlRICaptureEnd, blyi_capture_end(stream, modelRI));
}

aclError bly_acl_aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *status,
                                        aclmdlRI *modelRI)
{
    enum blyi_capture_status found;
    if (stream == NULL)
        return acl_null(aclmdlRICaptureGetInfo, "stream");
    if (status == NULL && modelRI == NULL)
        return acl_reject(aclmdlRICaptureGetInfo, ACL_ERROR_INVALID_PARAM,
                          "status and modelRI are both NULL");
    bly_status result = blyi_capture_info(stream, &found, modelRI);
    if (result == BLY_OK && status != NULL)
        *status = (aclmdlRICaptureStatus)found;
    return acl_result(aclmdlRICaptureGetInfo, result);
}

aclError bly_acl_aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode)
{
    if (mode == NULL)
        return acl_null(aclmdlRICaptureThreadExchangeMode, "mode");
    enum blyi_capture_mode both = (enum blyi_capture_mode) * mode;
    bly_status status = blyi_capture_exchange(&both);
    if (status == BLY_OK)
        *mode = (aclmdlRICaptureMode)both;
    return acl_result(aclmdlRICaptureThreadExchangeMode, status);
}

/* ── Groups ───────────────────────────────────────────────────────────────────────────────── */

aclError bly_acl_aclmdlRICaptureTaskGrpBegin(aclrtStream stream)
{
    if (stream == NULL)
        return acl_null(aclmdlRICaptureTaskGrpBegin, "stream");
    return acl_result(aclmdlRICaptureTaskGrpBegin, blyi_group_begin(stream));
}

aclError bly_acl_aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp *handle)
{
    if (stream == NULL || handle == NULL)
        return acl_reject(aclmdlRICaptureTaskGrpEnd, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          stream == NULL ? "stream" : "handle");
    return acl_result(aclmdlRICaptureTaskGrpEnd, blyi_group_end(stream, handle));
}

aclError bly_acl_aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle)
{
    if (stream == NULL || handle == NULL)
        return acl_reject(aclmdlRICaptureTaskUpdateBegin, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          stream == NULL ? "stream" : "handle");
    return acl_result(aclmdlRICaptureTaskUpdateBegin, blyi_update_begin(stream, handle));
}

aclError bly_acl_aclmdlRICaptureTaskUpdateEnd(aclrtStream stream)
{
    if (stream == NULL)
        return acl_null(aclmdlRICaptureTaskUpdateEnd, "stream");
    return acl_result(aclmdlRICaptureTaskUpdateEnd, blyi_update_end(stream));
}

/* ── Conditions ───────────────────────────────────────────────────────────────────────────── */

aclError bly_acl_aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue,
                                          aclmdlRICondHandleFlag flag, aclmdlRICondHandle *handle)
{
    uint32_t site = ACL_SITE();
    if (modelRI == NULL || handle == NULL)
        return acl_reject(aclmdlRICondHandleCreate, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "handle");
    if ((int)flag != 0 && (int)flag != ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT)
        return acl_reject(aclmdlRICondHandleCreate, ACL_ERROR_RT_PARAM_INVALID,
                          "flag %d is not 0 or 1", (int)flag);
    return acl_result(
        aclmdlRICondHandleCreate,
        blyi_condition_create(modelRI, defaultLaunchValue, (int)flag != 0, site, handle));
}

aclError bly_acl_aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle, uint64_t **ptr)
{
    if (handle == NULL || ptr == NULL)
        return acl_reject(aclmdlRICondHandleGetCondPtr, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          handle == NULL ? "handle" : "ptr");
    return acl_result(aclmdlRICondHandleGetCondPtr, blyi_condition_word(handle, ptr));
}

aclError bly_acl_aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream,
                                     uint32_t flags)
{
    uint32_t site = ACL_SITE();
    if (stream == NULL || params.handle == NULL || params.modelRIArray == NULL)
        return acl_reject(aclmdlRIAddCondTask, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          stream == NULL          ? "stream"
                          : params.handle == NULL ? "params.handle"
                                                  : "params.modelRIArray");
    if ((unsigned)params.type > ACL_MODEL_RI_COND_TYPE_SWITCH)
        return acl_reject(aclmdlRIAddCondTask, ACL_ERROR_RT_PARAM_INVALID,
                          "type %d is not in 0 .. 2", (int)params.type);
    if (flags != 0)
        return acl_reject(aclmdlRIAddCondTask, ACL_ERROR_RT_PARAM_INVALID,
                          "flags %" PRIu32 " is not 0", flags);
    return acl_result(aclmdlRIAddCondTask,
                      blyi_condition_add(params.handle, (enum blyi_condition_kind)params.type,
                                         params.size, params.modelRIArray, stream, site));
}
