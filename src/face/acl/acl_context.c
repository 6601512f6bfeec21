/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_context.c - explicit contexts and system parameters.
 */
#include <inttypes.h>

#include "face/acl/check.h"

#define N_PROCESS_PARAMS (ACL_OPT_ENABLE_KERNEL_EARLY_START + 1)

static int64_t process_params[N_PROCESS_PARAMS]; /* atomic, one value each */

aclError bly_acl_aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
    uint32_t site = ACL_SITE();
    if (context == NULL)
        return acl_null(aclrtCreateContext, "context");
    int card;
    aclError error = blyi_acl_check_device(BLYI_ACL_CALL_aclrtCreateContext, deviceId,
                                           ACL_ERROR_RT_INVALID_DEVICEID, &card);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtCreateContext, blyi_context_create(card, site, context));
}

aclError bly_acl_aclrtDestroyContext(aclrtContext context)
{
    if (context == NULL)
        return acl_null(aclrtDestroyContext, "context");
    return acl_result(aclrtDestroyContext, blyi_context_destroy(context));
}

aclError bly_acl_aclrtSetCurrentContext(aclrtContext context)
{
    if (context == NULL)
        return acl_null(aclrtSetCurrentContext, "context");
    return acl_result(aclrtSetCurrentContext, blyi_context_set(context));
}

aclError bly_acl_aclrtGetCurrentContext(aclrtContext *context)
{
    if (context == NULL)
        return acl_null(aclrtGetCurrentContext, "context");
    return acl_result(aclrtGetCurrentContext, blyi_context_get(context));
}

aclError bly_acl_aclrtCtxGetCurrentDefaultStream(aclrtStream *stream)
{
    if (stream == NULL)
        return acl_null(aclrtCtxGetCurrentDefaultStream, "stream");
    return blyi_acl_check_default(BLYI_ACL_CALL_aclrtCtxGetCurrentDefaultStream, stream, NULL);
}

/* Early start of kernels is a matter of the process only. */
static aclError check_option(enum blyi_acl_call call, aclSysParamOpt opt, int last)
{
    if ((int)opt < ACL_OPT_DETERMINISTIC || (int)opt > last)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "opt %d is not in 0 .. %d", (int)opt,
                               last);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value)
{
    aclError error =
        check_option(BLYI_ACL_CALL_aclrtCtxSetSysParamOpt, opt, ACL_OPT_STRONG_CONSISTENCY);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtCtxSetSysParamOpt, blyi_context_set_param((int)opt, value));
}

aclError bly_acl_aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value)
{
    if (value == NULL)
        return acl_null(aclrtCtxGetSysParamOpt, "value");
    aclError error =
        check_option(BLYI_ACL_CALL_aclrtCtxGetSysParamOpt, opt, ACL_OPT_STRONG_CONSISTENCY);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(aclrtCtxGetSysParamOpt, blyi_context_get_param((int)opt, value));
}

aclError bly_acl_aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value)
{
    aclError error =
        check_option(BLYI_ACL_CALL_aclrtSetSysParamOpt, opt, ACL_OPT_ENABLE_KERNEL_EARLY_START);
    if (error != ACL_SUCCESS)
        return error;
    __atomic_store_n(&process_params[opt], value, __ATOMIC_RELAXED);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value)
{
    if (value == NULL)
        return acl_null(aclrtGetSysParamOpt, "value");
    aclError error =
        check_option(BLYI_ACL_CALL_aclrtGetSysParamOpt, opt, ACL_OPT_ENABLE_KERNEL_EARLY_START);
    if (error != ACL_SUCCESS)
        return error;
    *value = __atomic_load_n(&process_params[opt], __ATOMIC_RELAXED);
    return ACL_SUCCESS;
}
