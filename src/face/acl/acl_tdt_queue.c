/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_tdt_queue.c - queues of the current device, their attributes, messages in and out.
 *
 * A queue is seen from its own process alone: rights for others are not built.
 */
#include <inttypes.h>
#include <string.h>

#include "base/handle.h"
#include "base/host.h"
#include "face/acl/check.h"
#include "npu/card.h"
#include "npu/mem_queue.h"

#include <acl/acl_tdt_queue.h>

struct attr {
    char name[BLYI_QUEUE_NAME_SIZE];
    uint32_t depth;
};

acltdtQueueAttr *bly_acl_acltdtCreateQueueAttr(void)
{
    struct attr *attr = blyi_host_calloc(1, sizeof(*attr));
    void *handle = NULL;
    bly_status status =
        attr == NULL ? blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for queue attributes")
                     : blyi_handle_create(BLYI_HANDLE_QUEUE_ATTR, attr, blyi_host_free, &handle);
    if (status != BLY_OK) {
        blyi_host_free(attr);
        (void)acl_result(acltdtCreateQueueAttr, status);
        return NULL;
    }
    attr->depth = BLYI_QUEUE_DEPTH;
    return handle;
}

aclError bly_acl_acltdtDestroyQueueAttr(const acltdtQueueAttr *attr)
{
    if (attr == NULL)
        return acl_null(acltdtDestroyQueueAttr, "attr");
    return acl_result(acltdtDestroyQueueAttr, blyi_handle_remove(BLYI_HANDLE_QUEUE_ATTR, attr));
}

/* `param` holds a pointer to the name. */
static aclError set_name(struct attr *attr, size_t len, const void *param)
{
    const char *name;
    if (len != sizeof(name))
        return acl_reject(acltdtSetQueueAttr, ACL_ERROR_INVALID_PARAM,
                          "len %zu is not that of a pointer to the name, %zu", len, sizeof(name));
    memcpy(&name, param, sizeof(name));
    if (name == NULL)
        return acl_reject(acltdtSetQueueAttr, ACL_ERROR_INVALID_PARAM, "the name is NULL");
    size_t length = strnlen(name, sizeof(attr->name));
    if (length == sizeof(attr->name))
        return acl_reject(acltdtSetQueueAttr, ACL_ERROR_INVALID_PARAM,
                          "the name has more than %zu bytes", sizeof(attr->name) - 1);
    memcpy(attr->name, name, length + 1);
    return ACL_SUCCESS;
}

static aclError set_depth(struct attr *attr, size_t len, const void *param)
{
    if (len != sizeof(attr->depth))
        return acl_reject(acltdtSetQueueAttr, ACL_ERROR_INVALID_PARAM,
                          "len %zu is not that of the depth, %zu", len, sizeof(attr->depth));
    memcpy(&attr->depth, param, sizeof(attr->depth));
    return ACL_SUCCESS;
}

aclError bly_acl_acltdtSetQueueAttr(acltdtQueueAttr *attr, acltdtQueueAttrType type, size_t len,
                                    const void *param)
{
    if (attr == NULL)
        return acl_null(acltdtSetQueueAttr, "attr");
    if (param == NULL)
        return acl_null(acltdtSetQueueAttr, "param");
    struct attr *known = blyi_handle_get(BLYI_HANDLE_QUEUE_ATTR, attr);
    if (known == NULL)
        return acl_result(acltdtSetQueueAttr, BLY_E_HANDLE);
    aclError error;
    if (type == ACL_TDT_QUEUE_NAME_PTR)
        error = set_name(known, len, param);
    else if (type == ACL_TDT_QUEUE_DEPTH_UINT32)
        error = set_depth(known, len, param);
    else
        error = acl_reject(acltdtSetQueueAttr, ACL_ERROR_INVALID_PARAM, "type %d is not 0 or 1",
                           (int)type);
    blyi_handle_put(attr);
    return error;
}

aclError bly_acl_acltdtGetQueueAttr(const acltdtQueueAttr *attr, acltdtQueueAttrType type,
                                    size_t len, size_t *paramRetSize, void *param)
{
    if (attr == NULL)
        return acl_null(acltdtGetQueueAttr, "attr");
    if (param == NULL)
        return acl_null(acltdtGetQueueAttr, "param");
    if (paramRetSize == NULL)
        return acl_null(acltdtGetQueueAttr, "paramRetSize");
    const struct attr *known = blyi_handle_get(BLYI_HANDLE_QUEUE_ATTR, attr);
    if (known == NULL)
        return acl_result(acltdtGetQueueAttr, BLY_E_HANDLE);
    const char *name = known->name; /* valid while the attributes live */
    bool is_name = type == ACL_TDT_QUEUE_NAME_PTR;
    const void *value = is_name ? (const void *)&name : &known->depth;
    size_t size = is_name ? sizeof(name) : sizeof(known->depth);
    aclError error = ACL_SUCCESS;
    if (!is_name && type != ACL_TDT_QUEUE_DEPTH_UINT32)
        error = acl_reject(acltdtGetQueueAttr, ACL_ERROR_INVALID_PARAM, "type %d is not 0 or 1",
                           (int)type);
    else if (len < size)
        error = acl_reject(acltdtGetQueueAttr, ACL_ERROR_INVALID_PARAM,
                           "len %zu is below the attribute's size, %zu", len, size);
    if (error == ACL_SUCCESS) {
        memcpy(param, value, size);
        *paramRetSize = size;
    }
    blyi_handle_put(attr);
    return error;
}

/* ── Queues ───────────────────────────────────────────────────────────────────────────────── */

aclError bly_acl_acltdtCreateQueue(const acltdtQueueAttr *attr, uint32_t *qid)
{
    uint32_t site = ACL_SITE();
    struct attr wanted = {.depth = BLYI_QUEUE_DEPTH};
    struct blyi_card *card;
    if (qid == NULL)
        return acl_null(acltdtCreateQueue, "qid");
    if (attr != NULL) {
        const struct attr *known = blyi_handle_get(BLYI_HANDLE_QUEUE_ATTR, attr);
        if (known == NULL)
            return acl_result(acltdtCreateQueue, BLY_E_HANDLE);
        wanted = *known;
        blyi_handle_put(attr);
    }
    aclError error = blyi_acl_check_card(BLYI_ACL_CALL_acltdtCreateQueue, &card);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(acltdtCreateQueue,
                      blyi_mem_queue_create(card->id, wanted.name, wanted.depth, false, site, qid));
}

/* The queue of that id on the thread's card, whether or not there is one. */
static aclError queue_here(enum blyi_acl_call call, uint32_t qid, struct blyi_queue_ref *queue)
{
    struct blyi_card *card;
    aclError error = blyi_acl_check_card(call, &card);
    if (error == ACL_SUCCESS)
        *queue = (struct blyi_queue_ref){card->id, qid, false};
    return error;
}

static aclError queue_and_time(enum blyi_acl_call call, uint32_t qid, int32_t timeout,
                               struct blyi_queue_ref *queue, uint64_t *deadline)
{
    aclError error = queue_here(call, qid, queue);
    if (error == ACL_SUCCESS && !blyi_mem_queue_deadline(timeout, deadline))
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                "timeout %" PRId32 " ms is below -1 (no limit)", timeout);
    return error;
}

aclError bly_acl_acltdtDestroyQueue(uint32_t qid)
{
    struct blyi_queue_ref queue;
    aclError error = queue_here(BLYI_ACL_CALL_acltdtDestroyQueue, qid, &queue);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(acltdtDestroyQueue, blyi_mem_queue_destroy(queue));
}

aclError bly_acl_acltdtEnqueueData(uint32_t qid, const void *data, size_t dataSize,
                                   const void *userData, size_t userDataSize, int32_t timeout,
                                   uint32_t rsv)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtEnqueueData;
    struct blyi_queue_ref queue;
    uint64_t deadline;
    (void)rsv; /* "can be 0": the runtime looks at no value */
    if (data == NULL)
        return acl_null(acltdtEnqueueData, "data");
    if (dataSize == 0)
        return acl_reject(acltdtEnqueueData, ACL_ERROR_INVALID_PARAM, "dataSize is 0");
    if (userData == NULL && userDataSize > 0)
        return acl_reject(acltdtEnqueueData, ACL_ERROR_RT_PARAM_INVALID,
                          "userData is NULL and userDataSize %zu", userDataSize);
    aclError error = queue_and_time(call, qid, timeout, &queue, &deadline);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(
        call, blyi_mem_queue_put_data(queue, data, dataSize, userData, userDataSize, deadline));
}

aclError bly_acl_acltdtDequeueData(uint32_t qid, void *data, size_t dataSize, size_t *retDataSize,
                                   void *userData, size_t userDataSize, int32_t timeout)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtDequeueData;
    struct blyi_queue_ref queue;
    uint64_t deadline, taken = 0;
    if (data == NULL)
        return acl_null(acltdtDequeueData, "data");
    if (retDataSize == NULL)
        return acl_null(acltdtDequeueData, "retDataSize");
    if (dataSize == 0)
        return acl_reject(acltdtDequeueData, ACL_ERROR_INVALID_PARAM, "dataSize is 0");
    if (userData == NULL && userDataSize > 0)
        return acl_reject(acltdtDequeueData, ACL_ERROR_RT_PARAM_INVALID,
                          "userData is NULL and userDataSize %zu", userDataSize);
    aclError error = queue_and_time(call, qid, timeout, &queue, &deadline);
    if (error == ACL_SUCCESS)
        error = blyi_acl_result(call, blyi_mem_queue_take_data(queue, data, dataSize, &taken,
                                                               userData, userDataSize, deadline));
    if (error == ACL_SUCCESS)
        *retDataSize = taken;
    return error;
}

aclError bly_acl_acltdtEnqueue(uint32_t qid, acltdtBuf buf, int32_t timeout)
{
    struct blyi_queue_ref queue;
    uint64_t deadline;
    if (buf == NULL)
        return acl_null(acltdtEnqueue, "buf");
    aclError error = queue_and_time(BLYI_ACL_CALL_acltdtEnqueue, qid, timeout, &queue, &deadline);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(acltdtEnqueue, blyi_mem_queue_put_buffer(queue, buf, deadline));
}

aclError bly_acl_acltdtDequeue(uint32_t qid, acltdtBuf *buf, int32_t timeout)
{
    struct blyi_queue_ref queue;
    uint64_t deadline;
    if (buf == NULL)
        return acl_null(acltdtDequeue, "buf");
    aclError error = queue_and_time(BLYI_ACL_CALL_acltdtDequeue, qid, timeout, &queue, &deadline);
    if (error != ACL_SUCCESS)
        return error;
    return acl_result(acltdtDequeue, blyi_mem_queue_take_buffer(queue, buf, deadline));
}
