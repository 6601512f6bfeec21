/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_launch.c - launching functions of kernel binaries.
 *
 * Attributes of a launch: the engine decides where the kernel runs and how its fault is called;
 * a timeout ends it; scheduling, prefetch, dump and profiling are checked and change nothing.
 */
#include <inttypes.h>

#include "base/host.h"
#include "face/acl/check.h"
#include "face/acl/kernel_args.h"
#include "face/acl/launch.h"
#include "face/acl/overflow.h"
#include "npu/binary.h"
#include "npu/memory.h"

#define SCHEDULE_MODES 3
#define SECOND_US      1000000u

static aclError check_switch(enum blyi_acl_call call, const char *what, uint8_t value)
{
    if (value <= 1)
        return ACL_SUCCESS;
    return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "%s %d is not 0 or 1", what, value);
}

static aclError read_attribute(enum blyi_acl_call call, const aclrtLaunchKernelAttr *attr,
                               struct blyi_kernel_call *kernel)
{
    const aclrtLaunchKernelAttrValue *value = &attr->value;
    switch ((int)attr->id) {
    case ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE:
        if (value->schemMode >= SCHEDULE_MODES)
            return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                   "schemMode %d is not in 0 .. %d", value->schemMode,
                                   SCHEDULE_MODES - 1);
        return ACL_SUCCESS;
    case ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE:
        if ((int)value->engineType != ACL_RT_ENGINE_TYPE_AIC &&
            (int)value->engineType != ACL_RT_ENGINE_TYPE_AIV)
            return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "engineType %d is not 0 or 1",
                                   (int)value->engineType);
        if (kernel->engine != BLY_ENGINE_AICPU)
            kernel->engine =
                value->engineType == ACL_RT_ENGINE_TYPE_AIC ? BLY_ENGINE_CUBE : BLY_ENGINE_VECTOR;
        return ACL_SUCCESS;
    case ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET:
        if (value->blockDimOffset != 0)
            return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                                   "blockDimOffset %" PRIu32 ": blocks begin at 0 here",
                                   value->blockDimOffset);
        return ACL_SUCCESS;
    case ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH:
        return check_switch(call, "isBlockTaskPrefetch", value->isBlockTaskPrefetch);
    case ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP:
        return check_switch(call, "isDataDump", value->isDataDump);
    case ACL_RT_LAUNCH_KERNEL_ATTR_ENABLE_PROFILING:
        return check_switch(call, "enableProfiling", value->enableProfiling);
    case ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT:
        kernel->timeout_us = (uint64_t)value->timeout * SECOND_US;
        return ACL_SUCCESS;
    case ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US:
        kernel->timeout_us =
            (uint64_t)value->timeoutUs.timeoutHigh << 32 | value->timeoutUs.timeoutLow;
        return ACL_SUCCESS;
    default:
        return ACL_SUCCESS; /* as on the card: others are passed by */
    }
}

static aclError read_config(enum blyi_acl_call call, const aclrtLaunchKernelCfg *cfg,
                            struct blyi_kernel_call *kernel)
{
    bool in_s = false, in_us = false;
    if (cfg == NULL)
        return ACL_SUCCESS;
    if (cfg->attrs == NULL)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "cfg->attrs is NULL");
    for (size_t i = 0; i < cfg->numAttrs; i++) {
        aclError error = read_attribute(call, &cfg->attrs[i], kernel);
        if (error != ACL_SUCCESS)
            return error;
        in_s |= cfg->attrs[i].id == ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT;
        in_us |= cfg->attrs[i].id == ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US;
    }
    if (in_s && in_us)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "timeout and timeoutUs cannot both be given");
    return ACL_SUCCESS;
}

aclError blyi_acl_launch_pin(enum blyi_acl_call call, void *func, const aclrtLaunchKernelCfg *cfg,
                             struct blyi_kernel_call *kernel)
{
    const struct blyi_function *function;
    bly_status status = blyi_function_pin(func, &function);
    if (status != BLY_OK)
        return blyi_acl_result(call, status);
    kernel->fn = function->fn;
    kernel->name = function->name;
    kernel->binary = function->binary;
    kernel->function = func;
    kernel->engine = function->on_cpu ? BLY_ENGINE_AICPU : BLY_ENGINE_VECTOR;
    kernel->scan = true;
    aclError error = read_config(call, cfg, kernel);
    if (error != ACL_SUCCESS)
        blyi_function_unpin(func);
    return error;
}

aclError blyi_acl_launch(enum blyi_acl_call call, void *func, const aclrtLaunchKernelCfg *cfg,
                         void *stream, struct blyi_kernel_call *kernel)
{
    aclError error = blyi_acl_launch_pin(call, func, cfg, kernel);
    if (error != ACL_SUCCESS)
        return error;
    kernel->tell_overflow = blyi_acl_looks_for_overflow(stream);
    error = blyi_acl_result(call, blyi_kernel_launch(kernel, stream));
    blyi_function_unpin(func);
    return error;
}

aclError bly_acl_aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle, uint32_t numBlocks,
                                             aclrtStream stream, aclrtLaunchKernelCfg *cfg,
                                             aclrtArgsHandle argsHandle, void *reserve)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtLaunchKernelWithConfig;
    struct blyi_kernel_patch patches[BLYI_ARGS_PARAMS];
    struct blyi_kernel_call kernel = {.n_blocks = numBlocks, .site = ACL_SITE()};
    if (funcHandle == NULL)
        return acl_null(aclrtLaunchKernelWithConfig, "funcHandle");
    if (numBlocks == 0)
        return acl_reject(aclrtLaunchKernelWithConfig, ACL_ERROR_INVALID_PARAM, "numBlocks is 0");
    if (argsHandle == NULL)
        return acl_null(aclrtLaunchKernelWithConfig, "argsHandle");
    if (reserve != NULL)
        return acl_reject(aclrtLaunchKernelWithConfig, ACL_ERROR_INVALID_PARAM,
                          "reserve is not NULL");
    aclError error = blyi_args_pin(call, argsHandle, &kernel, patches);
    if (error != ACL_SUCCESS)
        return error;
    error = blyi_acl_launch(call, funcHandle, cfg, stream, &kernel);
    blyi_args_unpin(argsHandle);
    return error;
}

/* The argument block lies on the card and is read when the task runs. */
static aclError launch_from_card(enum blyi_acl_call call, void *func, uint32_t n_blocks,
                                 const void *args, size_t size, const aclrtLaunchKernelCfg *cfg,
                                 void *stream, uint32_t site)
{
    struct blyi_kernel_call kernel = {
        .n_blocks = n_blocks, .site = site, .args = args, .args_size = size, .args_on_card = true};
    if (func == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "funcHandle is NULL");
    if (args == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "argsData is NULL");
    if (size == 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "argsSize is 0");
    if (blyi_place_of(args, NULL) == BLYI_PLACE_HOST)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "argsData %p is pageable host memory, not card memory", args);
    return blyi_acl_launch(call, func, cfg, stream, &kernel);
}

aclError bly_acl_aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks,
                                   const void *argsData, size_t argsSize, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    return launch_from_card(BLYI_ACL_CALL_aclrtLaunchKernel, funcHandle, numBlocks, argsData,
                            argsSize, NULL, stream, site);
}

aclError bly_acl_aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks,
                                     const void *argsData, size_t argsSize,
                                     aclrtLaunchKernelCfg *cfg, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    return launch_from_card(BLYI_ACL_CALL_aclrtLaunchKernelV2, funcHandle, numBlocks, argsData,
                            argsSize, cfg, stream, site);
}

static aclError read_places(enum blyi_acl_call call, const aclrtPlaceHolderInfo *places, size_t n,
                            size_t size, struct blyi_kernel_patch *patches)
{
    for (size_t i = 0; i < n; i++) {
        if (size < sizeof(void *) || places[i].addrOffset > size - sizeof(void *) ||
            places[i].dataOffset >= size)
            return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                   "placeholder %zu: offsets %" PRIu32 " and %" PRIu32
                                   " are not both inside the %zu bytes",
                                   i, places[i].addrOffset, places[i].dataOffset, size);
        patches[i].pointer_at = places[i].addrOffset;
        patches[i].data_at = places[i].dataOffset;
    }
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle, uint32_t numBlocks,
                                               aclrtStream stream, aclrtLaunchKernelCfg *cfg,
                                               void *hostArgs, size_t argsSize,
                                               aclrtPlaceHolderInfo *placeHolderArray,
                                               size_t placeHolderNum)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtLaunchKernelWithHostArgs;
    struct blyi_kernel_patch patches[BLYI_ARGS_PARAMS];
    struct blyi_kernel_call kernel = {.n_blocks = numBlocks,
                                      .site = ACL_SITE(),
                                      .args = hostArgs,
                                      .args_size = argsSize,
                                      .patches = patches,
                                      .n_patches = placeHolderNum};
    if (funcHandle == NULL)
        return acl_null(aclrtLaunchKernelWithHostArgs, "funcHandle");
    if (hostArgs == NULL)
        return acl_null(aclrtLaunchKernelWithHostArgs, "hostArgs");
    if (argsSize == 0 || placeHolderNum > BLYI_ARGS_PARAMS ||
        (placeHolderNum != 0 && placeHolderArray == NULL))
        return acl_reject(aclrtLaunchKernelWithHostArgs, ACL_ERROR_RT_PARAM_INVALID,
                          "argsSize %zu, %zu placeholders at %p: there are 0 to %d of those",
                          argsSize, placeHolderNum, (void *)placeHolderArray, BLYI_ARGS_PARAMS);
    aclError error = read_places(call, placeHolderArray, placeHolderNum, argsSize, patches);
    return error == ACL_SUCCESS ? blyi_acl_launch(call, funcHandle, cfg, stream, &kernel) : error;
}
