/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_error.c - the one table of codes, and the text of recent errors.
 *
 * Nothing here takes a lock; message.c keeps the text.
 */
#include "face/acl/acl_error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "face/acl/message.h"

/* X(status, code): what a status is called where no exception below says otherwise. */
#define DEFAULT_CODES(X)                                                                           \
    X(OK, ACL_SUCCESS)                                                                             \
    X(E_INVALID, ACL_ERROR_RT_PARAM_INVALID)                                                       \
    X(E_NO_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION)                                                 \
    X(E_CAP, ACL_ERROR_RT_MEMORY_ALLOCATION)                                                       \
    X(E_HOST_MEMORY, ACL_ERROR_RT_MEMORY_ALLOCATION)                                               \
    X(E_DEVICE, ACL_ERROR_RT_INVALID_DEVICEID)                                                     \
    X(E_NO_CONTEXT, ACL_ERROR_RT_CONTEXT_NULL)                                                     \
    X(E_HANDLE, ACL_ERROR_RT_INVALID_HANDLE)                                                       \
    X(E_STREAM_CONTEXT, ACL_ERROR_RT_STREAM_CONTEXT)                                               \
    X(E_NO_STREAM, ACL_ERROR_RT_NO_STREAM_RESOURCE)                                                \
    X(E_NO_EVENT, ACL_ERROR_RT_NO_EVENT_RESOURCE)                                                  \
    X(E_NO_NOTIFY, ACL_ERROR_RT_NO_NOTIFY_RESOURCE)                                                \
    X(E_UNSUPPORTED, ACL_ERROR_RT_FEATURE_NOT_SUPPORT)                                             \
    X(E_TIMEOUT, ACL_ERROR_RT_WAIT_TIMEOUT)                                                        \
    X(E_STATE, ACL_ERROR_RT_INTERNAL_ERROR)                                                        \
    X(E_RELEASED, ACL_ERROR_RT_CONTEXT_RELEASE_ERROR)                                              \
    X(E_ALIGN, ACL_ERROR_RT_PARAM_INVALID)                                                         \
    X(E_REGISTERED, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED)                                      \
    X(E_NOT_REGISTERED, ACL_ERROR_HOST_MEMORY_NOT_REGISTERED)                                      \
    X(E_SUBSCRIBED, ACL_ERROR_RT_STREAM_SUBSCRIBE)                                                 \
    X(E_NOT_SUBSCRIBED, ACL_ERROR_RT_STREAM_NO_CB_REG)                                             \
    X(E_NOT_RECORDED, ACL_ERROR_RT_INTERNAL_ERROR)                                                 \
    X(E_NOT_COMPLETE, ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID)                                        \
    X(E_FAULT, ACL_ERROR_RT_SYS_DMA)                                                               \
    X(E_ABORTED, ACL_ERROR_RT_STREAM_ABORT)                                                        \
    X(E_FORKED, ACL_ERROR_RT_DRV_INTERNAL_ERROR)                                                   \
    X(E_IO, ACL_ERROR_INVALID_FILE)                                                                \
    X(E_PARSE, ACL_ERROR_PARSE_FILE)                                                               \
    X(E_PIN_LIMIT, ACL_ERROR_RT_MEMORY_ALLOCATION)                                                 \
    X(E_SYSTEM, ACL_ERROR_RT_DRV_INTERNAL_ERROR)                                                   \
    X(E_CANCELLED, ACL_ERROR_RT_INTERNAL_ERROR)                                                    \
    X(E_KERNEL_VECTOR, ACL_ERROR_RT_VECTOR_CORE_EXCEPTION)                                         \
    X(E_KERNEL_CUBE, ACL_ERROR_RT_AICORE_EXCEPTION)                                                \
    X(E_KERNEL_AICPU, ACL_ERROR_RT_AICPU_EXCEPTION)                                                \
    X(E_NO_KERNEL, ACL_ERROR_RT_INTERNAL_ERROR)                                                    \
    X(E_CARD_ABORTED, ACL_ERROR_RT_DEVICE_TASK_ABORT)                                              \
    X(E_TIMEOUT_VECTOR, ACL_ERROR_RT_VECTOR_CORE_TIMEOUT)                                          \
    X(E_TIMEOUT_CUBE, ACL_ERROR_RT_AICORE_TIMEOUT)                                                 \
    X(E_TIMEOUT_AICPU, ACL_ERROR_RT_AICPU_TIMEOUT)                                                 \
    X(E_QUEUE_FULL, ACL_ERROR_RT_QUEUE_FULL)                                                       \
    X(E_QUEUE_EMPTY, ACL_ERROR_RT_QUEUE_EMPTY)                                                     \
    X(E_MEMORY_ERROR, ACL_ERROR_RT_DEVICE_MEM_ERROR)                                               \
    X(E_PERMISSION, ACL_ERROR_RT_NO_PERMISSION)                                                    \
    X(E_PEER_ENDED, ACL_ERROR_RT_IPC_ERROR)                                                        \
    X(E_CAPTURING, ACL_ERROR_RT_STREAM_CAPTURED)                                                   \
    X(E_EVENT_CAPTURED, ACL_ERROR_RT_EVENT_CAPTURED)                                               \
    X(E_NOT_CAPTURING, ACL_ERROR_RT_STREAM_NOT_CAPTURED)                                           \
    X(E_CAPTURE_MODE, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT)                                       \
    X(E_CAPTURE_DEFAULT, ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT)                                     \
    X(E_CAPTURE_CONFLICT, ACL_ERROR_STREAM_CAPTURE_CONFLICT)                                       \
    X(E_CAPTURE_ORDER, ACL_ERROR_RT_CAPTURE_DEPENDENCY)                                            \
    X(E_UNJOINED, ACL_ERROR_RT_STREAM_UNJOINED)                                                    \
    X(E_CAPTURE_ORIGIN, ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED)                                     \
    X(E_CAPTURE_THREAD, ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD)                                  \
    X(E_CAPTURE_INVALID, ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED)                                  \
    X(E_CAPTURE_OPEN, ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING)                                      \
    X(E_GRAPH_CAPTURING, ACL_ERROR_RT_MODEL_CAPTURED)                                              \
    X(E_GRAPH_CONTEXT, ACL_ERROR_RT_MODEL_CONTEXT)                                                 \
    X(E_GRAPH_STREAM, ACL_ERROR_RT_STREAM_MODEL)                                                   \
    X(E_GRAPH_RUNNING, ACL_ERROR_RT_MODEL_RUNNING)                                                 \
    X(E_GRAPH_UPDATE, ACL_ERROR_RT_MODEL_UPDATE_FAILED)                                            \
    X(E_GRAPH_ABORTED, ACL_ERROR_RT_MODEL_ABORT_NORMAL)                                            \
    X(E_GROUP_STATE, ACL_ERROR_STREAM_TASK_GROUP_STATUS)                                           \
    X(E_GROUP_BROKEN, ACL_ERROR_STREAM_TASK_GROUP_INTR)                                            \
    X(E_TASK_KIND, ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT)                                             \
    X(E_TOO_SHORT, ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY)

/* X(function, status, code): where a call has a code of its own. A device that cannot be
 * brought up is 507033 whatever was short; the sentence says what. A bad address is the
 * driver's "bad input" in a synchronous call and a failed transfer (default) in a stream. */
#define EXCEPTIONS(X)                                                                              \
    X(aclInit, E_IO, ACL_ERROR_INTERNAL_ERROR) /* the model file, hence the SoC name */            \
    X(aclInit, E_PARSE, ACL_ERROR_INTERNAL_ERROR)                                                  \
    X(aclInit, E_INVALID, ACL_ERROR_INTERNAL_ERROR)                                                \
    X(aclInit, E_HOST_MEMORY, ACL_ERROR_BAD_ALLOC)                                                 \
    X(aclprofStart, E_IO, ACL_ERROR_PROFILING_FAILURE)                                             \
    X(aclprofStop, E_IO, ACL_ERROR_PROFILING_FAILURE)                                              \
    X(aclprofFinalize, E_IO, ACL_ERROR_PROFILING_FAILURE)                                          \
    X(aclrtSetDevice, E_NO_MEMORY, ACL_ERROR_RT_DEV_SETUP_ERROR)                                   \
    X(aclrtSetDevice, E_CAP, ACL_ERROR_RT_DEV_SETUP_ERROR)                                         \
    X(aclrtSetDevice, E_HOST_MEMORY, ACL_ERROR_RT_DEV_SETUP_ERROR)                                 \
    X(aclrtSetDevice, E_SYSTEM, ACL_ERROR_RT_DEV_SETUP_ERROR)                                      \
    X(aclrtSetDevice, E_FORKED, ACL_ERROR_RT_DEV_SETUP_ERROR)                                      \
    X(aclrtSetDevice, E_IO, ACL_ERROR_RT_DEV_SETUP_ERROR)                                          \
    X(aclrtSetDevice, E_PARSE, ACL_ERROR_RT_DEV_SETUP_ERROR)                                       \
    X(aclrtSetDevice, E_INVALID, ACL_ERROR_RT_DEV_SETUP_ERROR)                                     \
    X(aclrtCreateContext, E_NO_MEMORY, ACL_ERROR_RT_DEV_SETUP_ERROR)                               \
    X(aclrtCreateContext, E_CAP, ACL_ERROR_RT_DEV_SETUP_ERROR)                                     \
    X(aclrtCreateContext, E_HOST_MEMORY, ACL_ERROR_RT_DEV_SETUP_ERROR)                             \
    X(aclrtCreateContext, E_SYSTEM, ACL_ERROR_RT_DEV_SETUP_ERROR)                                  \
    X(aclrtCreateContext, E_FORKED, ACL_ERROR_RT_DEV_SETUP_ERROR)                                  \
    X(aclrtCreateContext, E_IO, ACL_ERROR_RT_DEV_SETUP_ERROR)                                      \
    X(aclrtCreateContext, E_PARSE, ACL_ERROR_RT_DEV_SETUP_ERROR)                                   \
    X(aclrtCreateContext, E_INVALID, ACL_ERROR_RT_DEV_SETUP_ERROR)                                 \
    X(aclrtDestroyContext, E_HANDLE, ACL_ERROR_RT_CONTEXT_NULL)                                    \
    X(aclrtSetCurrentContext, E_HANDLE, ACL_ERROR_RT_CONTEXT_NULL)                                 \
    X(aclrtCtxGetSysParamOpt, E_STATE, ACL_ERROR_RT_SYSPARAMOPT_NOT_SET)                           \
    X(aclrtSynchronizeDeviceWithTimeout, E_TIMEOUT, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)              \
    X(aclrtSynchronizeStreamWithTimeout, E_TIMEOUT, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)              \
    X(aclrtSynchronizeEventWithTimeout, E_TIMEOUT, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT)                \
    X(aclrtProcessReport, E_TIMEOUT, ACL_ERROR_RT_REPORT_TIMEOUT)                                  \
    X(aclrtProcessReport, E_NOT_SUBSCRIBED, ACL_ERROR_RT_THREAD_SUBSCRIBE)                         \
    X(aclrtUnSubscribeReport, E_NOT_SUBSCRIBED, ACL_ERROR_RT_THREAD_SUBSCRIBE)                     \
    X(aclrtProcessHostFunc, E_TIMEOUT, ACL_ERROR_RT_REPORT_TIMEOUT)                                \
    X(aclrtProcessHostFunc, E_NOT_SUBSCRIBED, ACL_ERROR_RT_THREAD_SUBSCRIBE)                       \
    X(aclrtUnSubscribeHostFunc, E_NOT_SUBSCRIBED, ACL_ERROR_RT_THREAD_SUBSCRIBE)                   \
    X(aclrtMemcpy, E_FAULT, ACL_ERROR_RT_PARAM_INVALID)                                            \
    X(aclrtMemcpy2d, E_FAULT, ACL_ERROR_RT_PARAM_INVALID)                                          \
    X(aclrtMemcpyBatch, E_FAULT, ACL_ERROR_RT_PARAM_INVALID)                                       \
    X(aclrtMemcpyBatchV2, E_FAULT, ACL_ERROR_RT_PARAM_INVALID)                                     \
    X(aclrtMemset, E_FAULT, ACL_ERROR_RT_PARAM_INVALID)                                            \
    X(aclrtMemsetD32, E_FAULT, ACL_ERROR_RT_PARAM_INVALID)                                         \
    X(aclrtDeviceCanAccessPeer, E_PARSE, ACL_ERROR_RT_PARAM_INVALID)                               \
    X(aclrtDeviceEnablePeerAccess, E_PARSE, ACL_ERROR_RT_PARAM_INVALID)                            \
    X(aclrtGetDevicesTopo, E_PARSE, ACL_ERROR_RT_PARAM_INVALID)                                    \
    X(aclrtMemSetAccess, E_PARSE, ACL_ERROR_RT_PARAM_INVALID)                                      \
    X(aclrtUnmapMem, E_INVALID, ACL_ERROR_RT_DRV_INTERNAL_ERROR)                                   \
    X(aclrtMemSetAccess, E_STATE, ACL_ERROR_RT_DRV_INTERNAL_ERROR)                                 \
    X(aclrtMapMem, E_HANDLE, ACL_ERROR_RT_PARAM_INVALID)                                           \
    X(aclrtMemMapNoAccess, E_HANDLE, ACL_ERROR_RT_PARAM_INVALID)                                   \
    X(aclrtFreePhysical, E_HANDLE, ACL_ERROR_RT_PARAM_INVALID)                                     \
    X(aclrtMemGetAllocationPropertiesFromHandle, E_HANDLE, ACL_ERROR_RT_PARAM_INVALID)             \
    X(aclrtMemMapSetLink, E_HANDLE, ACL_ERROR_RT_PARAM_INVALID)                                    \
    X(aclrtMemExportToShareableHandle, E_HANDLE, ACL_ERROR_RT_PARAM_INVALID)                       \
    X(aclrtMemExportToShareableHandleV2, E_HANDLE, ACL_ERROR_RT_PARAM_INVALID)                     \
    X(aclrtIpcMemImportByKey, E_PARSE, ACL_ERROR_RT_PARAM_INVALID)                                 \
    X(aclrtMemImportFromShareableHandle, E_PARSE, ACL_ERROR_RT_PARAM_INVALID)                      \
    X(aclrtMemImportFromShareableHandleV2, E_PARSE, ACL_ERROR_RT_PARAM_INVALID)                    \
    X(aclrtIpcMemGetExportKey, E_NO_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL)                      \
    X(aclrtIpcMemGetExportKey, E_IO, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL)                             \
    X(aclrtMemExportToShareableHandle, E_NO_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL)              \
    X(aclrtMemExportToShareableHandle, E_IO, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL)                     \
    X(aclrtMemExportToShareableHandleV2, E_NO_MEMORY, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL)            \
    X(aclrtMemExportToShareableHandleV2, E_IO, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL)                   \
    X(aclrtMemP2PMap, E_FAULT, ACL_ERROR_RT_PARAM_INVALID)                                         \
    X(aclrtLaunchKernelWithArgsArray, E_FAULT, ACL_ERROR_RT_PARAM_INVALID)                         \
    X(aclrtKernelArgsInitByUserMem, E_FAULT, ACL_ERROR_RT_PARAM_INVALID)                           \
    X(aclrtMemcpyAsync, E_CAPTURE_MODE, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC)                     \
    X(aclrtMemcpyAsyncWithCondition, E_CAPTURE_MODE, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC)        \
    X(aclrtMemcpy2dAsync, E_CAPTURE_MODE, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC)                   \
    X(aclrtMemcpyBatchAsync, E_CAPTURE_MODE, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC)                \
    X(aclrtMemcpyBatchAsyncV2, E_CAPTURE_MODE, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC)              \
    X(aclrtMemsetAsync, E_CAPTURE_MODE, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC)                     \
    X(aclrtMemsetD32Async, E_CAPTURE_MODE, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC)                  \
    X(aclrtMemPoolMallocAsync, E_NO_MEMORY, ACL_ERROR_RT_INTERNAL_ERROR)                           \
    X(aclrtMemPoolMallocAsync, E_CAP, ACL_ERROR_RT_INTERNAL_ERROR)                                 \
    X(aclrtMemPoolMallocAsync, E_HOST_MEMORY, ACL_ERROR_RT_INTERNAL_ERROR)                         \
    X(aclrtMemPoolDestroy, E_HANDLE, ACL_ERROR_RT_INTERNAL_ERROR)                                  \
    X(aclmdlRIExecute, E_TIMEOUT, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)                                \
    X(aclCreateDataBuffer, E_HOST_MEMORY, ACL_ERROR_BAD_ALLOC)                                     \
    X(aclprofCreateStamp, E_HOST_MEMORY, ACL_ERROR_BAD_ALLOC)                                      \
    X(aclprofDestroyStamp, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                      \
    X(aclprofSetStampTraceMessage, E_HANDLE, ACL_ERROR_INVALID_PARAM)                              \
    X(aclprofPush, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                              \
    X(aclprofMark, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                              \
    X(aclprofRangeStart, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                        \
    X(aclprofRangeStop, E_INVALID, ACL_ERROR_INVALID_PARAM)                                        \
    X(aclprofPop, E_STATE, ACL_ERROR_INTERNAL_ERROR)                                               \
    X(aclprofRangePop, E_STATE, ACL_ERROR_INTERNAL_ERROR)                                          \
    X(aclDestroyDataBuffer, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                     \
    X(aclUpdateDataBuffer, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                      \
    X(aclrtAllocatorDestroyDesc, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                \
    X(aclrtAllocatorSetObjToDesc, E_HANDLE, ACL_ERROR_INVALID_PARAM)                               \
    X(aclrtAllocatorSetAllocFuncToDesc, E_HANDLE, ACL_ERROR_INVALID_PARAM)                         \
    X(aclrtAllocatorSetFreeFuncToDesc, E_HANDLE, ACL_ERROR_INVALID_PARAM)                          \
    X(aclrtAllocatorSetAllocAdviseFuncToDesc, E_HANDLE, ACL_ERROR_INVALID_PARAM)                   \
    X(aclrtAllocatorSetGetAddrFromBlockFuncToDesc, E_HANDLE, ACL_ERROR_INVALID_PARAM)              \
    X(aclrtSnapShotProcessLock, E_STATE, ACL_ERROR_SNAPSHOT_LOCK_FAILED)                           \
    X(aclrtSnapShotProcessLock, E_HOST_MEMORY, ACL_ERROR_SNAPSHOT_LOCK_FAILED)                     \
    X(aclrtSnapShotProcessLock, E_TIMEOUT, ACL_ERROR_SNAPSHOT_LOCK_TIMEOUT)                        \
    X(aclrtSnapShotProcessLock, E_CANCELLED, ACL_ERROR_SNAPSHOT_CALLBACK_FAILED)                   \
    X(aclrtSnapShotProcessBackup, E_STATE, ACL_ERROR_SNAPSHOT_BACKUP_FAILED)                       \
    X(aclrtSnapShotProcessBackup, E_TIMEOUT, ACL_ERROR_SNAPSHOT_BACKUP_FAILED)                     \
    X(aclrtSnapShotProcessBackup, E_HOST_MEMORY, ACL_ERROR_SNAPSHOT_BACKUP_FAILED)                 \
    X(aclrtSnapShotProcessBackup, E_SYSTEM, ACL_ERROR_SNAPSHOT_BACKUP_FAILED)                      \
    X(aclrtSnapShotProcessBackup, E_CANCELLED, ACL_ERROR_SNAPSHOT_CALLBACK_FAILED)                 \
    X(aclrtSnapShotProcessRestore, E_STATE, ACL_ERROR_SNAPSHOT_RESTORE_FAILED)                     \
    X(aclrtSnapShotProcessRestore, E_NO_MEMORY, ACL_ERROR_SNAPSHOT_RESTORE_FAILED)                 \
    X(aclrtSnapShotProcessRestore, E_CAP, ACL_ERROR_SNAPSHOT_RESTORE_FAILED)                       \
    X(aclrtSnapShotProcessRestore, E_HOST_MEMORY, ACL_ERROR_SNAPSHOT_RESTORE_FAILED)               \
    X(aclrtSnapShotProcessRestore, E_SYSTEM, ACL_ERROR_SNAPSHOT_RESTORE_FAILED)                    \
    X(aclrtSnapShotProcessRestore, E_CANCELLED, ACL_ERROR_SNAPSHOT_CALLBACK_FAILED)                \
    X(aclrtSnapShotProcessUnlock, E_STATE, ACL_ERROR_SNAPSHOT_UNLOCK_FAILED)                       \
    X(aclrtSnapShotProcessUnlock, E_NO_MEMORY, ACL_ERROR_SNAPSHOT_UNLOCK_FAILED)                   \
    X(aclrtSnapShotProcessUnlock, E_CAP, ACL_ERROR_SNAPSHOT_UNLOCK_FAILED)                         \
    X(aclrtSnapShotProcessUnlock, E_HOST_MEMORY, ACL_ERROR_SNAPSHOT_UNLOCK_FAILED)                 \
    X(aclrtSnapShotProcessUnlock, E_SYSTEM, ACL_ERROR_SNAPSHOT_UNLOCK_FAILED)                      \
    X(aclrtSnapShotProcessUnlock, E_CANCELLED, ACL_ERROR_SNAPSHOT_CALLBACK_FAILED)                 \
    X(acltdtDestroyQueueAttr, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                   \
    X(acltdtSetQueueAttr, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                       \
    X(acltdtGetQueueAttr, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                       \
    X(acltdtCreateQueue, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                        \
    X(acltdtDestroyQueueRoute, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                  \
    X(acltdtGetQueueRouteParam, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                 \
    X(acltdtDestroyQueueRouteList, E_HANDLE, ACL_ERROR_INVALID_PARAM)                              \
    X(acltdtAddQueueRoute, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                      \
    X(acltdtGetQueueRoute, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                      \
    X(acltdtBindQueueRoutes, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                    \
    X(acltdtUnbindQueueRoutes, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                  \
    X(acltdtDestroyQueueRouteQueryInfo, E_HANDLE, ACL_ERROR_INVALID_PARAM)                         \
    X(acltdtSetQueueRouteQueryInfo, E_HANDLE, ACL_ERROR_INVALID_PARAM)                             \
    X(acltdtQueryQueueRoutes, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                   \
    X(acltdtDestroyDataItem, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                    \
    X(acltdtGetDimsFromItem, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                    \
    X(acltdtGetSliceInfoFromItem, E_HANDLE, ACL_ERROR_INVALID_PARAM)                               \
    X(acltdtDestroyDataset, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                     \
    X(acltdtAddDataItem, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                        \
    X(acltdtSendTensor, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                         \
    X(acltdtReceiveTensor, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                      \
    X(acltdtDestroyChannel, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                     \
    X(acltdtStopChannel, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                        \
    X(acltdtCleanChannel, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                       \
    X(acltdtQueryChannelSize, E_HANDLE, ACL_ERROR_INVALID_PARAM)                                   \
    X(acltdtSendTensor, E_PARSE, ACL_ERROR_INVALID_PARAM)                                          \
    X(acltdtReceiveTensor, E_PARSE, ACL_ERROR_INVALID_PARAM)                                       \
    X(acltdtBindQueueRoutes, E_INVALID, ACL_ERROR_FAILURE)                                         \
    X(acltdtDestroyQueue, E_STATE, ACL_ERROR_FAILURE)                                              \
    X(acltdtEnqueue, E_QUEUE_FULL, ACL_ERROR_FAILURE)                                              \
    X(acltdtDequeue, E_QUEUE_EMPTY, ACL_ERROR_FAILURE)

static const char *const call_names[] = {
#define CALL_NAME(name) #name,
    BLYI_ACL_SYMBOLS(CALL_NAME)
#undef CALL_NAME
        "?",
};

static const struct exception {
    enum blyi_acl_call call;
    bly_status status;
    aclError code;
} exceptions[] = {
#define EXCEPTION_ROW(function, status, code) {BLYI_ACL_CALL_##function, BLY_##status, code},
    EXCEPTIONS(EXCEPTION_ROW)
#undef EXCEPTION_ROW
};

static _Thread_local aclError last_error;

const char *blyi_acl_call_name(enum blyi_acl_call call)
{
    return call_names[call < BLYI_ACL_CALL_COUNT ? call : BLYI_ACL_CALL_COUNT];
}

aclError blyi_acl_code(enum blyi_acl_call call, bly_status status)
{
    for (size_t i = 0; i < BLYI_COUNT(exceptions); i++) {
        if (exceptions[i].call == call && exceptions[i].status == status)
            return exceptions[i].code;
    }
    switch (status) { /* all of them: the compiler warns of one without a code */
#define DEFAULT_ROW(name, code)                                                                    \
    case BLY_##name:                                                                               \
        return code;
        DEFAULT_CODES(DEFAULT_ROW)
#undef DEFAULT_ROW
    }
    return ACL_ERROR_RT_INTERNAL_ERROR;
}

/* Codes of the argument checks are not the runtime's; "not supported" comes quietly. */
static bool is_stored(aclError code)
{
    int family = code / 1000;
    return (family == 107 || family == 207 || family == 507) &&
           code != ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
}

static aclError record(enum blyi_acl_call call, aclError code, const char *sentence)
{
    if (is_stored(code))
        last_error = code;
    char line[BLYI_FAIL_MAX + 128];
    int length =
        snprintf(line, sizeof(line), "%d %s: %s", code, blyi_acl_call_name(call), sentence);
    if (length > 0)
        blyi_message_add(line);
    return code;
}

aclError blyi_acl_fail(enum blyi_acl_call call, bly_status status)
{
    bly_assert(status != BLY_OK);
    const char *sentence = blyi_fail_text();
    if (blyi_fail_code() != status || sentence[0] == '\0')
        sentence = bly_status_text(status);
    return record(call, blyi_acl_code(call, status), sentence);
}

aclError blyi_acl_reject(enum blyi_acl_call call, aclError code, const char *fmt, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, args);
    va_end(args);
    (void)blyi_fail(code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT ? BLY_E_UNSUPPORTED : BLY_E_INVALID,
                    "%s: %s", blyi_acl_call_name(call), sentence);
    return record(call, code, sentence);
}

const char *bly_acl_aclGetRecentErrMsg(void)
{
    return blyi_message_take();
}

aclError bly_acl_aclrtPeekAtLastError(aclrtLastErrLevel level)
{
    if (level != ACL_RT_THREAD_LEVEL)
        return acl_reject(aclrtPeekAtLastError, ACL_ERROR_INVALID_PARAM, "level %d is not 0",
                          (int)level);
    return last_error;
}

aclError bly_acl_aclrtGetLastError(aclrtLastErrLevel level)
{
    if (level != ACL_RT_THREAD_LEVEL)
        return acl_reject(aclrtGetLastError, ACL_ERROR_INVALID_PARAM, "level %d is not 0",
                          (int)level);
    aclError code = last_error;
    last_error = ACL_SUCCESS;
    return code;
}
