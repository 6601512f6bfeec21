/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_kernel_args_user.c - argument lists in memory of the program's own.
 *
 * Such a list has no handle of ours: the address where it was placed is what the program passes.
 * Addresses are remembered, so that no other is ever read; the program keeps the memory until it
 * uses the list no more. Lock: rank FACE, the addresses.
 */
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/map.h"
#include "face/acl/kernel_args.h"
#include "npu/binary.h"
#include "npu/copy.h"

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);
static struct blyi_map places; /* address -> itself */
static uint32_t n_places;      /* read without the lock: most programs have none */

struct blyi_args *blyi_args_of_user(const void *address)
{
    if (likely(__atomic_load_n(&n_places, __ATOMIC_ACQUIRE) == 0))
        return NULL;
    blyi_lock_take(&lock);
    void *found = blyi_map_get(&places, (uint64_t)(uintptr_t)address);
    blyi_lock_drop(&lock);
    return found;
}

static bly_status remember(void *address)
{
    blyi_lock_take(&lock);
    bly_status status = BLY_OK;
    if (blyi_map_get(&places, (uint64_t)(uintptr_t)address) == NULL) {
        status = blyi_map_put(&places, (uint64_t)(uintptr_t)address, address);
        if (status == BLY_OK)
            __atomic_fetch_add(&n_places, 1, __ATOMIC_RELEASE);
    }
    blyi_lock_drop(&lock);
    return status;
}

static aclError check_function(enum blyi_acl_call call, void *func)
{
    const struct blyi_function *function;
    if (func == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "funcHandle is NULL");
    bly_status status = blyi_function_pin(func, &function);
    if (status == BLY_OK)
        blyi_function_unpin(func);
    return blyi_acl_result(call, status);
}

aclError bly_acl_aclrtKernelArgsGetHandleMemSize(aclrtFuncHandle funcHandle, size_t *memSize)
{
    if (memSize == NULL)
        return acl_null(aclrtKernelArgsGetHandleMemSize, "memSize");
    aclError error = check_function(BLYI_ACL_CALL_aclrtKernelArgsGetHandleMemSize, funcHandle);
    if (error == ACL_SUCCESS)
        *memSize = sizeof(struct blyi_args);
    return error;
}

aclError bly_acl_aclrtKernelArgsGetMemSize(aclrtFuncHandle funcHandle, size_t userArgsSize,
                                           size_t *actualArgsSize)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtKernelArgsGetMemSize;
    if (actualArgsSize == NULL)
        return acl_null(aclrtKernelArgsGetMemSize, "actualArgsSize");
    if (userArgsSize == 0 || userArgsSize > BLY_KERNEL_ARGS_MAX)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "userArgsSize %zu is not in 1 .. %u", userArgsSize,
                               BLY_KERNEL_ARGS_MAX);
    aclError error = check_function(call, funcHandle);
    if (error == ACL_SUCCESS) /* a kernel has no arguments beside the program's */
        *actualArgsSize = blyi_align_up(userArgsSize, 8);
    return error;
}

aclError bly_acl_aclrtKernelArgsInitByUserMem(aclrtFuncHandle funcHandle,
                                              aclrtArgsHandle argsHandle, void *userHostMem,
                                              size_t actualArgsSize)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtKernelArgsInitByUserMem;
    if (argsHandle == NULL)
        return acl_null(aclrtKernelArgsInitByUserMem, "argsHandle");
    if (userHostMem == NULL)
        return acl_null(aclrtKernelArgsInitByUserMem, "userHostMem");
    if (actualArgsSize == 0 || actualArgsSize > BLY_KERNEL_ARGS_MAX)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "actualArgsSize %zu is not in 1 .. %u", actualArgsSize,
                               BLY_KERNEL_ARGS_MAX);
    if (((uintptr_t)argsHandle & (sizeof(void *) - 1)) != 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "argsHandle %p is not aligned to %zu bytes", argsHandle,
                               sizeof(void *));
    aclError error = check_function(call, funcHandle);
    if (error != ACL_SUCCESS)
        return error;
    const struct blyi_args begin = {.room = (uint32_t)actualArgsSize, .block = userHostMem};
    /* Also finds out whether the memory is there. */
    bly_status status = blyi_set_own(userHostMem, 0, actualArgsSize);
    if (status == BLY_OK)
        status = blyi_copy_own(argsHandle, &begin, sizeof(begin));
    if (status == BLY_OK)
        status = remember(argsHandle);
    return blyi_acl_result(call, status);
}
