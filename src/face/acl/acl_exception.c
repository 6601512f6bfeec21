/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_exception.c - callbacks on tasks that fail, and what they may ask.
 *
 * They run on the engine's thread before the task counts as ended, so that whoever waits for the
 * stream finds them done. Lock: rank FACE, the lists; no callback runs under it.
 */
#include <string.h>

#include "base/host.h"
#include "base/lock.h"
#include "base/map.h"
#include "face/acl/acl_error.h"
#include "face/acl/exceptions.h"
#include "face/acl/visible.h"
#include "npu/binary.h"
#include "npu/exception.h"

#define MAGIC         0x4e50584531435845u
#define CALLBACKS_MAX 64

/* What the opaque type of the header is. */
struct rtExceptionInfo {
    uint64_t magic; /* only what we made is read */
    uint32_t task, stream, thread, device, code;
    void *args;
    uint32_t args_size;
    void *function;
};

struct of_binary {
    aclrtOpExceptionCallback fn;
    void *data;
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);
static aclrtExceptionInfoCallback single, several[CALLBACKS_MAX];
static size_t n_several;
static struct blyi_map binaries; /* binary handle -> struct of_binary */

static bool callback_of_binary(void *function, struct of_binary *out)
{
    const struct blyi_function *found;
    if (function == NULL)
        return false;
    if (blyi_function_pin(function, &found) != BLY_OK) {
        blyi_fail_clear();
        return false;
    }
    blyi_lock_take(&lock);
    const struct of_binary *known =
        blyi_map_get(&binaries, (uint64_t)(uintptr_t)found->binary_handle);
    if (known != NULL)
        *out = *known;
    blyi_lock_drop(&lock);
    blyi_function_unpin(function);
    return known != NULL;
}

static void listen(const struct blyi_exception *exception)
{
    aclrtExceptionInfoCallback fns[CALLBACKS_MAX + 1];
    struct of_binary of_binary;
    size_t n = 0;
    int user = blyi_visible_user(exception->card);
    struct rtExceptionInfo info = {
        .magic = MAGIC,
        .task = exception->task,
        .stream = exception->stream,
        .thread = exception->thread,
        .device = user >= 0 ? (uint32_t)user : BLYI_EXCEPTION_UNKNOWN,
        .code = (uint32_t)blyi_acl_code(BLYI_ACL_CALL_aclrtSynchronizeStream, exception->status),
        .args = exception->args,
        .args_size = exception->args_size,
        .function = exception->function,
    };
    blyi_lock_take(&lock);
    if (single != NULL)
        fns[n++] = single;
    memcpy(&fns[n], several, n_several * sizeof(several[0]));
    n += n_several;
    blyi_lock_drop(&lock);
    if (callback_of_binary(exception->function, &of_binary))
        of_binary.fn(&info, of_binary.data);
    for (size_t i = 0; i < n; i++)
        fns[i](&info);
    info.magic = 0;
}

aclError bly_acl_aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback)
{
    blyi_lock_take(&lock);
    single = callback;
    blyi_lock_drop(&lock);
    blyi_exception_listen(listen);
    return ACL_SUCCESS;
}

static size_t find_locked(aclrtExceptionInfoCallback callback)
{
    size_t i = 0;
    while (i < n_several && several[i] != callback)
        i++;
    return i;
}

aclError bly_acl_aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback)
{
    if (callback == NULL)
        return acl_reject(aclrtExceptionInfoCallbackRegister, ACL_ERROR_RT_PARAM_INVALID,
                          "callback is NULL");
    blyi_lock_take(&lock);
    size_t at = find_locked(callback);
    bool full = at == CALLBACKS_MAX;
    if (!full && at == n_several)
        several[n_several++] = callback;
    blyi_lock_drop(&lock);
    if (full)
        return acl_reject(aclrtExceptionInfoCallbackRegister, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                          "%d callbacks are registered: no more fit", CALLBACKS_MAX);
    blyi_exception_listen(listen);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback)
{
    if (callback == NULL)
        return acl_reject(aclrtExceptionInfoCallbackUnregister, ACL_ERROR_RT_PARAM_INVALID,
                          "callback is NULL");
    blyi_lock_take(&lock);
    size_t at = find_locked(callback);
    bool found = at < n_several;
    if (found)
        memmove(&several[at], &several[at + 1], (--n_several - at) * sizeof(several[0]));
    blyi_lock_drop(&lock);
    if (!found)
        return acl_reject(aclrtExceptionInfoCallbackUnregister, ACL_ERROR_RT_PARAM_INVALID,
                          "the callback is not registered");
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtBinarySetExceptionCallback(aclrtBinHandle binHandle,
                                                 aclrtOpExceptionCallback callback, void *userData)
{
    if (binHandle == NULL)
        return acl_null(aclrtBinarySetExceptionCallback, "binHandle");
    if (callback == NULL)
        return acl_null(aclrtBinarySetExceptionCallback, "callback");
    bly_status status = blyi_binary_check(binHandle);
    if (status != BLY_OK)
        return acl_result(aclrtBinarySetExceptionCallback, status);
    uint64_t binary = (uint64_t)(uintptr_t)binHandle;
    blyi_lock_take(&lock);
    struct of_binary *known = blyi_map_get(&binaries, binary);
    if (known == NULL) {
        known = blyi_host_alloc(sizeof(*known));
        if (known != NULL && blyi_map_put(&binaries, binary, known) != BLY_OK) {
            blyi_host_free(known);
            known = NULL;
        }
    }
    if (known != NULL)
        *known = (struct of_binary){callback, userData};
    blyi_lock_drop(&lock);
    if (known == NULL)
        return acl_reject(aclrtBinarySetExceptionCallback, ACL_ERROR_RT_MEMORY_ALLOCATION,
                          "the host has no memory for a callback");
    blyi_exception_listen(listen);
    return ACL_SUCCESS;
}

void blyi_exceptions_forget_binary(const void *binary)
{
    blyi_lock_take(&lock);
    void *known = blyi_map_remove(&binaries, (uint64_t)(uintptr_t)binary);
    blyi_lock_drop(&lock);
    blyi_host_free(known);
}

/* ── What a callback may ask ──────────────────────────────────────────────────────────────── */

/* Anything may come here as a pointer that was kept; what is not ours is not read. */
static bool is_ours(const aclrtExceptionInfo *info)
{
    return (uintptr_t)info % _Alignof(aclrtExceptionInfo) == 0 && info->magic == MAGIC;
}

#define GETTER(function, field)                                                                    \
    uint32_t bly_acl_##function(const aclrtExceptionInfo *info)                                    \
    {                                                                                              \
        return info != NULL && is_ours(info) ? info->field : BLYI_EXCEPTION_UNKNOWN;               \
    }

GETTER(aclrtGetTaskIdFromExceptionInfo, task)
GETTER(aclrtGetStreamIdFromExceptionInfo, stream)
GETTER(aclrtGetThreadIdFromExceptionInfo, thread)
GETTER(aclrtGetDeviceIdFromExceptionInfo, device)
GETTER(aclrtGetErrorCodeFromExceptionInfo, code)

aclError bly_acl_aclrtGetArgsFromExceptionInfo(const aclrtExceptionInfo *info, void **devArgsPtr,
                                               uint32_t *devArgsLen)
{
    if (info == NULL)
        return acl_null(aclrtGetArgsFromExceptionInfo, "info");
    if (devArgsPtr == NULL)
        return acl_null(aclrtGetArgsFromExceptionInfo, "devArgsPtr");
    if (devArgsLen == NULL)
        return acl_null(aclrtGetArgsFromExceptionInfo, "devArgsLen");
    if (!is_ours(info) || info->args == NULL)
        return acl_reject(aclrtGetArgsFromExceptionInfo, ACL_ERROR_RT_PARAM_INVALID,
                          "the failed task is no kernel");
    *devArgsPtr = info->args;
    *devArgsLen = info->args_size;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtGetFuncHandleFromExceptionInfo(const aclrtExceptionInfo *info,
                                                     aclrtFuncHandle *func)
{
    if (info == NULL)
        return acl_null(aclrtGetFuncHandleFromExceptionInfo, "info");
    if (func == NULL)
        return acl_null(aclrtGetFuncHandleFromExceptionInfo, "func");
    if (!is_ours(info) || info->function == NULL)
        return acl_reject(aclrtGetFuncHandleFromExceptionInfo, ACL_ERROR_RT_PARAM_INVALID,
                          "the failed task has no kernel function");
    *func = info->function;
    return ACL_SUCCESS;
}
