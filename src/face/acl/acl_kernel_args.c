/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_kernel_args.c - argument lists of kernels.
 *
 * As on the card's runtime, a thread has one list: aclrtKernelArgsInit begins it anew, and it
 * ends with the thread. A list is used by one thread at a time; a launch copies it.
 */
#include "face/acl/kernel_args.h"

#include <pthread.h>
#include <string.h>
#include "base/handle.h"
#include "base/host.h"
#include "npu/binary.h"

#define ALIGN_MAX 8u /* of a parameter */

/* A thread's own, which lies in our memory. */
struct own_args {
    struct blyi_args args; /* first */
    _Alignas(64) char block[BLY_KERNEL_ARGS_MAX];
};

static pthread_key_t key; /* the thread's struct blyi_args */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void args_gone(void *object)
{
    struct blyi_args *args = object;
    blyi_host_free(((void **)(void *)args)[-1]);
}

static void thread_ends(void *object)
{
    struct blyi_args *args = object;
    if (blyi_handle_remove(BLYI_HANDLE_ARGS, args->handle) != BLY_OK)
        blyi_fail_clear();
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, thread_ends) == 0;
}

static struct blyi_args *make_args(void)
{
    /* Aligned by hand; the pages of the block are touched as it fills. */
    void *memory = blyi_host_calloc(1, sizeof(struct own_args) + 64 + sizeof(void *));
    if (memory == NULL)
        return NULL;
    struct own_args *own = (struct own_args *)blyi_align_up((uintptr_t)memory + sizeof(void *), 64);
    struct blyi_args *args = &own->args;
    ((void **)(void *)own)[-1] = memory;
    args->block = own->block;
    args->room = sizeof(own->block);
    if (blyi_handle_create(BLYI_HANDLE_ARGS, args, args_gone, &args->handle) != BLY_OK) {
        blyi_host_free(memory);
        return NULL;
    }
    if (pthread_setspecific(key, args) != 0) {
        blyi_handle_remove(BLYI_HANDLE_ARGS, args->handle);
        return NULL;
    }
    return args;
}

aclError bly_acl_aclrtKernelArgsInit(aclrtFuncHandle funcHandle, aclrtArgsHandle *argsHandle)
{
    const struct blyi_function *function;
    if (funcHandle == NULL)
        return acl_null(aclrtKernelArgsInit, "funcHandle");
    if (argsHandle == NULL)
        return acl_null(aclrtKernelArgsInit, "argsHandle");
    bly_status status = blyi_function_pin(funcHandle, &function);
    if (status != BLY_OK)
        return acl_result(aclrtKernelArgsInit, status);
    blyi_function_unpin(funcHandle);
    pthread_once(&once, make_key);
    struct blyi_args *args = has_key ? pthread_getspecific(key) : NULL;
    if (args == NULL && has_key)
        args = make_args();
    if (args == NULL)
        return acl_reject(aclrtKernelArgsInit, ACL_ERROR_RT_MEMORY_ALLOCATION,
                          "the host has no memory for an argument list");
    args->size = 0;
    args->n_params = 0;
    args->has_buffers = args->finalised = args->updated = false;
    *argsHandle = args->handle;
    return ACL_SUCCESS;
}

/* The list behind a handle, pinned; NULL: its code is in *error. */
static struct blyi_args *pin(enum blyi_acl_call call, void *handle, aclError *error)
{
    struct blyi_args *args = blyi_args_of_user(handle);
    if (args == NULL)
        args = blyi_handle_get(BLYI_HANDLE_ARGS, handle);
    *error = args != NULL ? ACL_SUCCESS : blyi_acl_fail(call, BLY_E_HANDLE);
    return args;
}

static void unpin(const struct blyi_args *args)
{
    if (args->handle != NULL)
        blyi_handle_put(args->handle);
}

/* 8, or the largest power of two that divides the size. */
static uint32_t alignment_of(size_t size)
{
    uint32_t align = 1;
    while (align < ALIGN_MAX && size % ((size_t)align * 2) == 0)
        align *= 2;
    return align;
}

static aclError append(enum blyi_acl_call call, struct blyi_args *args, const void *param,
                       size_t size, bool placeholder, aclrtParamHandle *handle)
{
    if (args->finalised || args->has_buffers)
        return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                               "no parameter can follow a %s",
                               args->finalised ? "finalised list" : "placeholder's buffer");
    if (args->n_params == BLYI_ARGS_PARAMS)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "a list has at most %d parameters",
                               BLYI_ARGS_PARAMS);
    uint64_t offset = blyi_align_up(args->size, alignment_of(size));
    if (size > args->room || offset + size > args->room)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "%zu bytes behind %u: this argument block has at most %u", size,
                               args->size, args->room);
    memset(args->block + args->size, 0, offset - args->size);
    memcpy(args->block + offset, param, size);
    args->params[args->n_params] = (struct blyi_args_param){
        .offset = (uint32_t)offset, .size = (uint32_t)size, .placeholder = placeholder};
    args->size = (uint32_t)(offset + size);
    args->n_params++;
    *handle = (aclrtParamHandle)(uintptr_t)args->n_params; /* index + 1 */
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void *param, size_t paramSize,
                                       aclrtParamHandle *paramHandle)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtKernelArgsAppend;
    aclError error;
    if (argsHandle == NULL)
        return acl_null(aclrtKernelArgsAppend, "argsHandle");
    if (param == NULL)
        return acl_null(aclrtKernelArgsAppend, "param");
    if (paramSize == 0)
        return acl_reject(aclrtKernelArgsAppend, ACL_ERROR_INVALID_PARAM, "paramSize is 0");
    if (paramHandle == NULL)
        return acl_null(aclrtKernelArgsAppend, "paramHandle");
    struct blyi_args *args = pin(call, argsHandle, &error);
    if (args == NULL)
        return error;
    error = append(call, args, param, paramSize, false, paramHandle);
    unpin(args);
    return error;
}

aclError bly_acl_aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle argsHandle,
                                                  aclrtParamHandle *paramHandle)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtKernelArgsAppendPlaceHolder;
    const void *nothing = NULL;
    aclError error;
    if (argsHandle == NULL)
        return acl_null(aclrtKernelArgsAppendPlaceHolder, "argsHandle");
    if (paramHandle == NULL)
        return acl_null(aclrtKernelArgsAppendPlaceHolder, "paramHandle");
    struct blyi_args *args = pin(call, argsHandle, &error);
    if (args == NULL)
        return error;
    error = append(call, args, &nothing, sizeof(nothing), true, paramHandle);
    unpin(args);
    return error;
}

static struct blyi_args_param *find_param(struct blyi_args *args, const void *handle,
                                          bool placeholder)
{
    uintptr_t index = (uintptr_t)handle - 1;
    if (index >= args->n_params || args->params[index].placeholder != placeholder)
        return NULL;
    return &args->params[index];
}

static aclError give_buffer(struct blyi_args *args, const void *handle, size_t size, void **buffer)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtKernelArgsGetPlaceHolderBuffer;
    struct blyi_args_param *param = find_param(args, handle, true);
    if (args->finalised)
        return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                               "the list is finalised: it takes no buffer");
    if (param == NULL || param->data_at != 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               param == NULL ? "paramHandle is no placeholder of this list"
                                             : "the placeholder has its buffer already");
    uint64_t at = blyi_align_up(args->size, ALIGN_MAX);
    if (size > args->room || at + size > args->room)
        return blyi_acl_reject(
            call, ACL_ERROR_RT_PARAM_INVALID,
            "a buffer of %zu bytes behind %u: this argument block has at most %u", size, args->size,
            args->room);
    memset(args->block + args->size, 0, at + size - args->size);
    param->data_at = (uint32_t)at;
    args->size = (uint32_t)(at + size);
    args->has_buffers = true;
    *buffer = args->block + at;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle argsHandle,
                                                     aclrtParamHandle paramHandle, size_t dataSize,
                                                     void **bufferAddr)
{
    aclError error;
    if (argsHandle == NULL)
        return acl_null(aclrtKernelArgsGetPlaceHolderBuffer, "argsHandle");
    if (paramHandle == NULL)
        return acl_null(aclrtKernelArgsGetPlaceHolderBuffer, "paramHandle");
    if (dataSize == 0)
        return acl_reject(aclrtKernelArgsGetPlaceHolderBuffer, ACL_ERROR_INVALID_PARAM,
                          "dataSize is 0");
    if (bufferAddr == NULL)
        return acl_null(aclrtKernelArgsGetPlaceHolderBuffer, "bufferAddr");
    struct blyi_args *args =
        pin(BLYI_ACL_CALL_aclrtKernelArgsGetPlaceHolderBuffer, argsHandle, &error);
    if (args == NULL)
        return error;
    error = give_buffer(args, paramHandle, dataSize, bufferAddr);
    unpin(args);
    return error;
}

aclError bly_acl_aclrtKernelArgsParaUpdate(aclrtArgsHandle argsHandle, aclrtParamHandle paramHandle,
                                           void *param, size_t paramSize)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtKernelArgsParaUpdate;
    aclError error;
    if (argsHandle == NULL)
        return acl_null(aclrtKernelArgsParaUpdate, "argsHandle");
    if (paramHandle == NULL)
        return acl_null(aclrtKernelArgsParaUpdate, "paramHandle");
    if (param == NULL)
        return acl_null(aclrtKernelArgsParaUpdate, "param");
    if (paramSize == 0)
        return acl_reject(aclrtKernelArgsParaUpdate, ACL_ERROR_INVALID_PARAM, "paramSize is 0");
    struct blyi_args *args = pin(call, argsHandle, &error);
    if (args == NULL)
        return error;
    const struct blyi_args_param *found = find_param(args, paramHandle, false);
    if (found == NULL || found->size != paramSize) {
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                "paramHandle is no parameter of %zu bytes of this list", paramSize);
    } else {
        memcpy(args->block + found->offset, param, paramSize);
        args->updated = true;
    }
    unpin(args);
    return error;
}

aclError bly_acl_aclrtKernelArgsFinalize(aclrtArgsHandle argsHandle)
{
    aclError error;
    if (argsHandle == NULL)
        return acl_null(aclrtKernelArgsFinalize, "argsHandle");
    struct blyi_args *args = pin(BLYI_ACL_CALL_aclrtKernelArgsFinalize, argsHandle, &error);
    if (args == NULL)
        return error;
    args->finalised = true;
    args->updated = false;
    unpin(args);
    return ACL_SUCCESS;
}

aclError blyi_args_pin(enum blyi_acl_call acl_call, void *handle, struct blyi_kernel_call *call,
                       struct blyi_kernel_patch *patches)
{
    aclError error;
    struct blyi_args *args = pin(acl_call, handle, &error);
    if (args == NULL)
        return error;
    if (!args->finalised || args->updated) {
        bool finalised = args->finalised;
        unpin(args);
        return blyi_acl_reject(acl_call, ACL_ERROR_RT_PARAM_INVALID,
                               finalised ? "the argument list was updated and not finalised"
                                         : "the argument list is not finalised");
    }
    call->args = args->block;
    call->args_size = args->size;
    call->patches = patches;
    call->n_patches = 0;
    for (uint32_t i = 0; i < args->n_params; i++)
        if (args->params[i].data_at != 0)
            patches[call->n_patches++] = (struct blyi_kernel_patch){
                .pointer_at = args->params[i].offset, .data_at = args->params[i].data_at};
    return ACL_SUCCESS;
}

void blyi_args_unpin(void *handle)
{
    if (blyi_args_of_user(handle) == NULL)
        blyi_handle_put(handle);
}
