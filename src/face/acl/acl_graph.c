/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_graph.c - graphs ("model running instances"): running, destroying, names, prints.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "npu/graph.h"

aclError bly_acl_aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (modelRI == NULL)
        return acl_null(aclmdlRIExecuteAsync, "modelRI");
    return acl_result(aclmdlRIExecuteAsync, blyi_graph_execute(modelRI, stream, site));
}

aclError bly_acl_aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout)
{
    uint32_t site = ACL_SITE();
    uint64_t timeout_ns;
    if (modelRI == NULL)
        return acl_null(aclmdlRIExecute, "modelRI");
    aclError error = blyi_acl_check_timeout(BLYI_ACL_CALL_aclmdlRIExecute, timeout,
                                            ACL_ERROR_RT_PARAM_INVALID, &timeout_ns);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclmdlRIExecute, blyi_graph_execute_now(modelRI, timeout_ns, site));
}

aclError bly_acl_aclmdlRIDestroy(aclmdlRI modelRI)
{
    if (modelRI == NULL)
        return acl_null(aclmdlRIDestroy, "modelRI");
    return acl_result(aclmdlRIDestroy, blyi_graph_destroy(modelRI));
}

aclError bly_acl_aclmdlRIAbort(aclmdlRI modelRI)
{
    if (modelRI == NULL)
        return acl_null(aclmdlRIAbort, "modelRI");
    return acl_result(aclmdlRIAbort, blyi_graph_abort(modelRI));
}

aclError bly_acl_aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func,
                                                 void *userData)
{
    if (modelRI == NULL || func == NULL)
        return acl_reject(aclmdlRIDestroyRegisterCallback, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "func");
    return acl_result(aclmdlRIDestroyRegisterCallback,
                      blyi_graph_on_destroy(modelRI, func, userData));
}

aclError bly_acl_aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback func)
{
    if (modelRI == NULL || func == NULL)
        return acl_reject(aclmdlRIDestroyUnregisterCallback, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "func");
    return acl_result(aclmdlRIDestroyUnregisterCallback, blyi_graph_off_destroy(modelRI, func));
}

aclError bly_acl_aclmdlRISetName(aclmdlRI modelRI, const char *name)
{
    if (modelRI == NULL || name == NULL)
        return acl_reject(aclmdlRISetName, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "name");
    return acl_result(aclmdlRISetName, blyi_graph_set_name(modelRI, name));
}

aclError bly_acl_aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char *name)
{
    if (modelRI == NULL || name == NULL)
        return acl_reject(aclmdlRIGetName, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "name");
    if (maxLen == 0)
        return acl_reject(aclmdlRIGetName, ACL_ERROR_INVALID_PARAM, "maxLen is 0");
    return acl_result(aclmdlRIGetName, blyi_graph_name(modelRI, maxLen, name));
}

aclError bly_acl_aclmdlRIGetId(aclmdlRI modelRI, uint32_t *modelRIId)
{
    if (modelRI == NULL || modelRIId == NULL)
        return acl_reject(aclmdlRIGetId, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "modelRIId");
    return acl_result(aclmdlRIGetId, blyi_graph_id(modelRI, modelRIId));
}

aclError bly_acl_aclmdlRIDebugPrint(aclmdlRI modelRI)
{
    if (modelRI == NULL)
        return acl_null(aclmdlRIDebugPrint, "modelRI");
    return acl_result(aclmdlRIDebugPrint, blyi_graph_log(modelRI));
}

aclError bly_acl_aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char *path, uint32_t flags)
{
    if (modelRI == NULL || path == NULL)
        return acl_reject(aclmdlRIDebugJsonPrint, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "path");
    if (flags > ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE)
        return acl_reject(aclmdlRIDebugJsonPrint, ACL_ERROR_RT_PARAM_INVALID,
                          "flags %" PRIu32 " is not 0 or 1", flags);
    return acl_result(aclmdlRIDebugJsonPrint,
                      blyi_graph_print(modelRI, path, flags == ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE));
}
