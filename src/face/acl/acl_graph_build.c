/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_graph_build.c - graphs that are built from bound streams; labels and switches.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "npu/graph.h"

aclError bly_acl_aclmdlRIBuildBegin(aclmdlRI *modelRI, uint32_t flag)
{
    uint32_t site = ACL_SITE();
    if (modelRI == NULL)
        return acl_null(aclmdlRIBuildBegin, "modelRI");
    if (flag != 0)
        return acl_reject(aclmdlRIBuildBegin, ACL_ERROR_RT_PARAM_INVALID,
                          "flag %" PRIu32 " is not 0", flag);
    return acl_result(aclmdlRIBuildBegin, blyi_graph_build(site, modelRI));
}

aclError bly_acl_aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag)
{
    if (modelRI == NULL || stream == NULL)
        return acl_reject(aclmdlRIBindStream, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "stream");
    if (flag != ACL_MODEL_STREAM_FLAG_HEAD && flag != ACL_MODEL_STREAM_FLAG_DEFAULT)
        return acl_reject(aclmdlRIBindStream, ACL_ERROR_RT_PARAM_INVALID,
                          "flag 0x%" PRIx32 " is not 0 (head) or 0x7fffffff", flag);
    return acl_result(aclmdlRIBindStream,
                      blyi_graph_bind(modelRI, stream, flag == ACL_MODEL_STREAM_FLAG_HEAD));
}

aclError bly_acl_aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream)
{
    if (modelRI == NULL || stream == NULL)
        return acl_reject(aclmdlRIUnbindStream, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "stream");
    return acl_result(aclmdlRIUnbindStream, blyi_graph_unbind(modelRI, stream));
}

aclError bly_acl_aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (modelRI == NULL || stream == NULL)
        return acl_reject(aclmdlRIEndTask, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          modelRI == NULL ? "modelRI" : "stream");
    return acl_result(aclmdlRIEndTask, blyi_graph_end_task(modelRI, stream, site));
}

aclError bly_acl_aclmdlRIBuildEnd(aclmdlRI modelRI, void *reserve)
{
    if (modelRI == NULL)
        return acl_null(aclmdlRIBuildEnd, "modelRI");
    if (reserve != NULL)
        return acl_reject(aclmdlRIBuildEnd, ACL_ERROR_RT_PARAM_INVALID, "reserve is not NULL");
    return acl_result(aclmdlRIBuildEnd, blyi_graph_build_end(modelRI));
}

aclError bly_acl_aclrtActiveStream(aclrtStream activeStream, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (activeStream == NULL)
        return acl_null(aclrtActiveStream, "activeStream");
    return acl_result(aclrtActiveStream, blyi_graph_activate(activeStream, stream, site));
}

/* Conditions are numbered as ours. */
aclError bly_acl_aclrtSwitchStream(void *leftValue, aclrtCondition cond, void *rightValue,
                                   aclrtCompareDataType dataType, aclrtStream trueStream,
                                   aclrtStream falseStream, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (leftValue == NULL || rightValue == NULL || trueStream == NULL)
        return acl_reject(aclrtSwitchStream, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          leftValue == NULL    ? "leftValue"
                          : rightValue == NULL ? "rightValue"
                                               : "trueStream");
    if (falseStream != NULL)
        return acl_reject(aclrtSwitchStream, ACL_ERROR_RT_PARAM_INVALID, "falseStream is not NULL");
    if ((unsigned)cond > ACL_RT_LESS_OR_EQUAL || (unsigned)dataType > ACL_RT_SWITCH_INT64)
        return acl_reject(aclrtSwitchStream, ACL_ERROR_RT_PARAM_INVALID,
                          "cond %d is not in 0 .. 5, or dataType %d not 0 or 1", (int)cond,
                          (int)dataType);
    return acl_result(aclrtSwitchStream,
                      blyi_graph_switch(leftValue, (enum blyi_compare)cond, rightValue,
                                        dataType == ACL_RT_SWITCH_INT64, trueStream, stream, site));
}

/* ── Labels ───────────────────────────────────────────────────────────────────────────────── */

aclError bly_acl_aclrtCreateLabel(aclrtLabel *label)
{
    if (label == NULL)
        return acl_null(aclrtCreateLabel, "label");
    return acl_result(aclrtCreateLabel, blyi_label_create(label));
}

aclError bly_acl_aclrtDestroyLabel(aclrtLabel label)
{
    if (label == NULL)
        return acl_null(aclrtDestroyLabel, "label");
    return acl_result(aclrtDestroyLabel, blyi_label_destroy(label));
}

aclError bly_acl_aclrtSetLabel(aclrtLabel label, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (label == NULL)
        return acl_null(aclrtSetLabel, "label");
    return acl_result(aclrtSetLabel, blyi_label_set(label, stream, site));
}

aclError bly_acl_aclrtCreateLabelList(aclrtLabel *labels, size_t num, aclrtLabelList *labelList)
{
    if (labels == NULL || labelList == NULL)
        return acl_reject(aclrtCreateLabelList, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          labels == NULL ? "labels" : "labelList");
    return acl_result(aclrtCreateLabelList, blyi_label_list_create(labels, num, labelList));
}

aclError bly_acl_aclrtDestroyLabelList(aclrtLabelList labelList)
{
    if (labelList == NULL)
        return acl_null(aclrtDestroyLabelList, "labelList");
    return acl_result(aclrtDestroyLabelList, blyi_label_list_destroy(labelList));
}

aclError bly_acl_aclrtSwitchLabelByIndex(void *ptr, uint32_t maxValue, aclrtLabelList labelList,
                                         aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (ptr == NULL || labelList == NULL)
        return acl_reject(aclrtSwitchLabelByIndex, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          ptr == NULL ? "ptr" : "labelList");
    return acl_result(aclrtSwitchLabelByIndex,
                      blyi_label_switch(ptr, maxValue, labelList, stream, site));
}
