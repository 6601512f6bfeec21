/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_graph_task.c - tasks of graphs: asking, changing, disabling.
 */
#include <inttypes.h>
#include <string.h>

#include "face/acl/check.h"
#include "face/acl/launch.h"
#include "npu/binary.h"
#include "npu/graph.h"
#include "npu/memory.h"

#define VALUE_CONDITIONS 4u

aclError bly_acl_aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream *streams, uint32_t *numStreams)
{
    if (modelRI == NULL || numStreams == NULL)
        return acl_reject(aclmdlRIGetStreams, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "numStreams");
    return acl_result(aclmdlRIGetStreams, blyi_graph_streams(modelRI, streams, numStreams));
}

aclError bly_acl_aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask *tasks,
                                          uint32_t *numTasks)
{
    if (stream == NULL || numTasks == NULL)
        return acl_reject(aclmdlRIGetTasksByStream, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          stream == NULL ? "stream" : "numTasks");
    return acl_result(aclmdlRIGetTasksByStream, blyi_graph_tasks(stream, tasks, numTasks));
}

aclError bly_acl_aclmdlRITaskGetSeqId(aclmdlRITask task, uint32_t *id)
{
    if (task == NULL || id == NULL)
        return acl_reject(aclmdlRITaskGetSeqId, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          task == NULL ? "task" : "id");
    return acl_result(aclmdlRITaskGetSeqId, blyi_graph_task_number(task, id));
}

/* Kinds of tasks are numbered as ours. */
aclError bly_acl_aclmdlRITaskGetType(aclmdlRITask task, aclmdlRITaskType *type)
{
    enum blyi_graph_task kind;
    if (task == NULL || type == NULL)
        return acl_reject(aclmdlRITaskGetType, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          task == NULL ? "task" : "type");
    bly_status status = blyi_graph_task_kind(task, &kind);
    if (status == BLY_OK)
        *type = (aclmdlRITaskType)kind;
    return acl_result(aclmdlRITaskGetType, status);
}

static void tell(const struct blyi_graph_params *found, aclmdlRITaskParams *params)
{
    memset(params, 0, sizeof(*params));
    params->type = (aclmdlRITaskType)found->kind;
    params->taskGrp = found->group;
    switch (found->kind) {
    case BLYI_GRAPH_OTHER:
        break;
    case BLYI_GRAPH_KERNEL:
        params->kernelTaskParams.funcHandle = found->u.kernel.function;
        params->kernelTaskParams.args = found->u.kernel.args;
        params->kernelTaskParams.isHostArgs = !found->u.kernel.args_on_card;
        params->kernelTaskParams.argsSize = found->u.kernel.args_size;
        params->kernelTaskParams.numBlocks = found->u.kernel.n_blocks;
        break;
    case BLYI_GRAPH_RECORD:
    case BLYI_GRAPH_WAIT:
    case BLYI_GRAPH_RESET: /* the three structures are alike */
        params->eventRecordTaskParams.event = found->u.event.event;
        params->eventRecordTaskParams.eventFlag = found->u.event.flags;
        params->eventRecordTaskParams.recordFlag = found->u.event.external;
        break;
    case BLYI_GRAPH_WRITE:
        params->valueWriteTaskParams.devAddr = found->u.value.address;
        params->valueWriteTaskParams.value = found->u.value.value;
        break;
    case BLYI_GRAPH_VALUE_WAIT:
        params->valueWaitTaskParams.devAddr = found->u.value.address;
        params->valueWaitTaskParams.value = found->u.value.value;
        params->valueWaitTaskParams.flag = found->u.value.condition;
        break;
    }
}

aclError bly_acl_aclmdlRITaskGetParams(aclmdlRITask task, aclmdlRITaskParams *params)
{
    struct blyi_graph_params found;
    if (task == NULL || params == NULL)
        return acl_reject(aclmdlRITaskGetParams, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          task == NULL ? "task" : "params");
    bly_status status = blyi_graph_task_params(task, &found);
    if (status == BLY_OK)
        tell(&found, params);
    return acl_result(aclmdlRITaskGetParams, status);
}

static aclError set_kernel(aclmdlRITask task, const aclmdlRIKernelTaskParams *params, uint32_t site)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclmdlRITaskSetParams;
    struct blyi_kernel_call kernel = {.n_blocks = params->numBlocks,
                                      .args = params->args,
                                      .args_size = params->argsSize,
                                      .site = site};
    if (params->funcHandle == NULL || params->args == NULL || params->argsSize == 0)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "funcHandle %p, args %p of %zu bytes: none may be NULL or 0",
                               params->funcHandle, params->args, params->argsSize);
    /* What GetParams told of launches from the host lies there. */
    kernel.args_on_card =
        params->isHostArgs == 0 && blyi_place_of(params->args, NULL) != BLYI_PLACE_HOST;
    aclError error = blyi_acl_launch_pin(call, params->funcHandle, params->cfg, &kernel);
    if (error != ACL_SUCCESS)
        return error;
    error = blyi_acl_result(call, blyi_graph_task_set_kernel(task, &kernel));
    blyi_function_unpin(params->funcHandle);
    return error;
}

aclError bly_acl_aclmdlRITaskSetParams(aclmdlRITask task, aclmdlRITaskParams *params)
{
    uint32_t site = ACL_SITE();
    if (task == NULL || params == NULL)
        return acl_reject(aclmdlRITaskSetParams, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          task == NULL ? "task" : "params");
    switch ((int)params->type) {
    case ACL_MODEL_RI_TASK_KERNEL:
        return set_kernel(task, &params->kernelTaskParams, site);
    case ACL_MODEL_RI_TASK_VALUE_WRITE:
        return acl_result(aclmdlRITaskSetParams,
                          blyi_graph_task_set_value(task, false,
                                                    params->valueWriteTaskParams.devAddr,
                                                    params->valueWriteTaskParams.value, 0));
    case ACL_MODEL_RI_TASK_VALUE_WAIT:
        if (params->valueWaitTaskParams.flag >= VALUE_CONDITIONS)
            return acl_reject(aclmdlRITaskSetParams, ACL_ERROR_RT_PARAM_INVALID,
                              "flag %" PRIu32 " is not in 0 .. 3",
                              params->valueWaitTaskParams.flag);
        return acl_result(aclmdlRITaskSetParams,
                          blyi_graph_task_set_value(task, true, params->valueWaitTaskParams.devAddr,
                                                    params->valueWaitTaskParams.value,
                                                    params->valueWaitTaskParams.flag));
    default:
        return acl_reject(aclmdlRITaskSetParams, ACL_ERROR_RT_PARAM_INVALID,
                          "type %d is not 1 (kernel), 5 (write) or 6 (wait)", (int)params->type);
    }
}

aclError bly_acl_aclmdlRITaskDisable(aclmdlRITask task)
{
    if (task == NULL)
        return acl_null(aclmdlRITaskDisable, "task");
    return acl_result(aclmdlRITaskDisable, blyi_graph_task_disable(task));
}

aclError bly_acl_aclmdlRIUpdate(aclmdlRI modelRI)
{
    if (modelRI == NULL)
        return acl_null(aclmdlRIUpdate, "modelRI");
    return acl_result(aclmdlRIUpdate, blyi_graph_update(modelRI));
}
