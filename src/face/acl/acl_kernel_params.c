/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_kernel_params.c - the parameters of a kernel, and launches that take a pointer to each.
 */
#include <inttypes.h>
#include <string.h>

#include "base/host.h"
#include "face/acl/check.h"
#include "face/acl/kernel_args.h"
#include "face/acl/launch.h"
#include "npu/binary.h"
#include "npu/copy.h"

/* The rule of aclrtKernelArgsAppend. */
static uint32_t place(uint32_t end, uint32_t size)
{
    uint32_t align = 1;
    while (align < 8 && size % (align * 2) == 0)
        align *= 2;
    return (uint32_t)blyi_align_up(end, align);
}

/* Pins the function; ACL_SUCCESS: the caller unpins it. */
static aclError pin_params(enum blyi_acl_call call, const void *func, const uint32_t **sizes,
                           size_t *n)
{
    const struct blyi_function *function;
    void *handle = (void *)(uintptr_t)func;
    if (func == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "func is NULL");
    bly_status status = blyi_function_pin(handle, &function);
    if (status != BLY_OK)
        return blyi_acl_fail(call, status);
    status = blyi_function_params(function, sizes, n);
    if (status != BLY_OK)
        blyi_function_unpin(handle);
    return blyi_acl_result(call, status);
}

aclError bly_acl_aclrtFunctionGetParamCount(const void *func, size_t *paramCount)
{
    const uint32_t *sizes = NULL;
    size_t n = 0;
    if (paramCount == NULL)
        return acl_null(aclrtFunctionGetParamCount, "paramCount");
    aclError error = pin_params(BLYI_ACL_CALL_aclrtFunctionGetParamCount, func, &sizes, &n);
    if (error != ACL_SUCCESS)
        return error;
    *paramCount = n;
    blyi_function_unpin((void *)(uintptr_t)func);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtFunctionGetParamInfo(const void *func, size_t paramIndex, size_t *paramOffset,
                                           size_t *paramSize)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtFunctionGetParamInfo;
    const uint32_t *sizes = NULL;
    size_t n = 0;
    if (paramOffset == NULL || paramSize == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                               paramOffset == NULL ? "paramOffset" : "paramSize");
    aclError error = pin_params(call, func, &sizes, &n);
    if (error != ACL_SUCCESS)
        return error;
    if (paramIndex >= n) {
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                "paramIndex %zu: the kernel has %zu parameters", paramIndex, n);
    } else {
        uint32_t offset = 0;
        for (size_t i = 0; i <= paramIndex; i++)
            offset = place(offset, sizes[i]) + (i < paramIndex ? sizes[i] : 0);
        *paramOffset = offset;
        *paramSize = sizes[paramIndex];
    }
    blyi_function_unpin((void *)(uintptr_t)func);
    return error;
}

/* Software kernels are not of the kind that has such a buffer: success and 0, as documented. */
aclError bly_acl_aclrtFunctionGetAvailDynUbufPerBlock(void *func, uint32_t flags,
                                                      size_t *dynamicUbufSize)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtFunctionGetAvailDynUbufPerBlock;
    const struct blyi_function *function;
    if (func == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "func is NULL");
    if (dynamicUbufSize == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "dynamicUbufSize is NULL");
    if (flags != 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "flags %" PRIu32 " is not 0",
                               flags);
    bly_status status = blyi_function_pin(func, &function);
    if (status == BLY_OK) {
        blyi_function_unpin(func);
        *dynamicUbufSize = 0;
    }
    return blyi_acl_result(call, status);
}

/* ── One pointer for each parameter ───────────────────────────────────────────────────────── */

static aclError gather(enum blyi_acl_call call, void **args, const uint32_t *sizes, size_t n,
                       char *block, uint32_t *size)
{
    void *places[BLYI_ARGS_PARAMS];
    bly_status status = BLY_OK;
    if (n > BLYI_ARGS_PARAMS || (n > 0 && args == NULL))
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "args %p: the kernel has %zu parameters, of at most %d",
                               (void *)args, n, BLYI_ARGS_PARAMS);
    if (n > 0) /* a list that is too short is found out here, not by a fault */
        status = blyi_copy_own(places, args, n * sizeof(places[0]));
    for (size_t i = 0; status == BLY_OK && i < n; i++) {
        if (places[i] == NULL)
            return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "args[%zu] is NULL", i);
        *size = place(*size, sizes[i]);
        status = blyi_copy_own(block + *size, places[i], sizes[i]);
        *size += sizes[i];
    }
    return blyi_acl_result(call, status);
}

aclError bly_acl_aclrtLaunchKernelWithArgsArray(void *func, uint32_t numBlocks, aclrtStream stream,
                                                aclrtLaunchKernelCfg *cfg, void **args)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtLaunchKernelWithArgsArray;
    struct blyi_kernel_call kernel = {.n_blocks = numBlocks, .site = ACL_SITE()};
    const uint32_t *sizes = NULL;
    uint32_t size = 0;
    size_t n = 0;
    aclError error = pin_params(call, func, &sizes, &n);
    if (error != ACL_SUCCESS)
        return error;
    char *block = blyi_host_calloc(1, BLY_KERNEL_ARGS_MAX);
    if (block == NULL)
        error = blyi_acl_reject(call, ACL_ERROR_RT_MEMORY_ALLOCATION,
                                "the host has no memory for an argument block");
    else
        error = gather(call, args, sizes, n, block, &size);
    if (error == ACL_SUCCESS) {
        kernel.args = block;
        kernel.args_size = size;
        error = blyi_acl_launch(call, func, cfg, stream, &kernel);
    }
    blyi_host_free(block); /* a launch has its copy */
    blyi_function_unpin(func);
    return error;
}
