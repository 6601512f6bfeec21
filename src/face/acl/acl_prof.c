/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_prof.c - what the program says about itself to a profiler: ranges and marks. They go into
 * recordings (observe/range.h) and have no other effect.
 *
 * A stamp is a text that a range or mark is made with. Push and Pop nest within a thread, with
 * stamps or with attributes; RangeStart and RangeStop may be called by different threads.
 */
#include <stdlib.h>
#include <string.h>

#include "base/handle.h"
#include "base/host.h"
#include "face/acl/acl_error.h"
#include "npu/stream.h"
#include "observe/range.h"

struct stamp {
    uint32_t name; /* 0: no text yet; atomic */
};

static const char unnamed[] = "(no message)";

void *bly_acl_aclprofCreateStamp(void)
{
    struct stamp *stamp = blyi_host_calloc(1, sizeof(*stamp));
    void *handle = NULL;
    bly_status status =
        stamp == NULL
            ? blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for %zu bytes", sizeof(*stamp))
            : blyi_handle_create(BLYI_HANDLE_STAMP, stamp, blyi_host_free, &handle);
    if (status != BLY_OK) {
        blyi_host_free(stamp);
        (void)acl_result(aclprofCreateStamp, status);
        return NULL;
    }
    return handle;
}

void bly_acl_aclprofDestroyStamp(void *stamp)
{
    if (stamp == NULL)
        (void)acl_null(aclprofDestroyStamp, "stamp");
    else
        (void)acl_result(aclprofDestroyStamp, blyi_handle_remove(BLYI_HANDLE_STAMP, stamp));
}

/* A copy of the text, which need not end where it says. */
static const char *copy_text(const char *text, size_t length, char buf[BLYI_NAME_MAX])
{
    size_t n = strnlen(text, length < BLYI_NAME_MAX - 1 ? length : BLYI_NAME_MAX - 1);
    memcpy(buf, text, n);
    buf[n] = '\0';
    return buf;
}

aclError bly_acl_aclprofSetStampTraceMessage(void *stamp, const char *msg, uint32_t msgLen)
{
    char text[BLYI_NAME_MAX];
    uint32_t name;
    if (stamp == NULL)
        return acl_null(aclprofSetStampTraceMessage, "stamp");
    if (msg == NULL)
        return acl_null(aclprofSetStampTraceMessage, "msg");
    struct stamp *is = blyi_handle_get(BLYI_HANDLE_STAMP, stamp);
    if (is == NULL)
        return acl_result(aclprofSetStampTraceMessage, BLY_E_HANDLE);
    bly_status status = blyi_name_intern(copy_text(msg, msgLen, text), &name);
    if (status == BLY_OK)
        __atomic_store_n(&is->name, name, __ATOMIC_RELAXED);
    blyi_handle_put(stamp);
    return acl_result(aclprofSetStampTraceMessage, status);
}

/* E_HANDLE. The text stays. */
static bly_status text_of(void *stamp, const char **text)
{
    struct stamp *is = blyi_handle_get(BLYI_HANDLE_STAMP, stamp);
    if (is == NULL)
        return BLY_E_HANDLE;
    uint32_t name = __atomic_load_n(&is->name, __ATOMIC_RELAXED);
    *text = name != 0 ? blyi_name_text(name) : unnamed;
    blyi_handle_put(stamp);
    return BLY_OK;
}

aclError bly_acl_aclprofPush(void *stamp)
{
    uint32_t site = ACL_SITE();
    const char *text;
    if (stamp == NULL)
        return acl_null(aclprofPush, "stamp");
    bly_status status = text_of(stamp, &text);
    return acl_result(aclprofPush, status == BLY_OK ? blyi_range_push(text, site) : status);
}

aclError bly_acl_aclprofPop(void)
{
    uint32_t site = ACL_SITE();
    return acl_result(aclprofPop, blyi_range_pop(site));
}

aclError bly_acl_aclprofRangeStart(void *stamp, uint32_t *rangeId)
{
    uint32_t site = ACL_SITE();
    const char *text;
    if (stamp == NULL)
        return acl_null(aclprofRangeStart, "stamp");
    if (rangeId == NULL)
        return acl_null(aclprofRangeStart, "rangeId");
    bly_status status = text_of(stamp, &text);
    return acl_result(aclprofRangeStart,
                      status == BLY_OK ? blyi_range_start(text, site, rangeId) : status);
}

aclError bly_acl_aclprofRangeStop(uint32_t rangeId)
{
    uint32_t site = ACL_SITE();
    return acl_result(aclprofRangeStop, blyi_range_stop(rangeId, site));
}

aclError bly_acl_aclprofMark(void *stamp)
{
    uint32_t site = ACL_SITE();
    const char *text;
    if (stamp == NULL)
        return acl_null(aclprofMark, "stamp");
    bly_status status = text_of(stamp, &text);
    return acl_result(aclprofMark, status == BLY_OK ? blyi_mark(text, 0, site) : status);
}

aclError bly_acl_aclprofMarkEx(const char *msg, size_t msgLen, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    char text[BLYI_NAME_MAX];
    int32_t id;
    if (msg == NULL)
        return acl_null(aclprofMarkEx, "msg");
    if (msgLen == 0)
        return acl_reject(aclprofMarkEx, ACL_ERROR_INVALID_PARAM, "msgLen is 0");
    bly_status status = blyi_stream_id(stream, &id);
    if (status == BLY_OK)
        status = blyi_mark(copy_text(msg, msgLen, text), (uint32_t)id, site);
    return acl_result(aclprofMarkEx, status);
}

/* 0: the text was not kept. */
uint64_t bly_acl_aclprofStr2Id(const char *message)
{
    uint32_t name = 0;
    if (message == NULL)
        (void)acl_null(aclprofStr2Id, "message");
    else
        (void)acl_result(aclprofStr2Id, blyi_name_intern(message, &name));
    return name;
}

aclError bly_acl_aclprofRangePushEx(aclprofEventAttributes *attr)
{
    uint32_t site = ACL_SITE();
    if (attr == NULL)
        return acl_null(aclprofRangePushEx, "attr");
    if (attr->version != ACL_PROF_EVENT_ATTR_VERSION || attr->size < sizeof(*attr) ||
        attr->messageType != ACL_PROF_MESSAGE_TYPE_TENSOR_INFO)
        return acl_reject(aclprofRangePushEx, ACL_ERROR_INVALID_PARAM,
                          "attributes of version %u, %u bytes, message type %u; known are version "
                          "%u, %zu bytes, type %u",
                          attr->version, attr->size, attr->messageType, ACL_PROF_EVENT_ATTR_VERSION,
                          sizeof(*attr), (unsigned)ACL_PROF_MESSAGE_TYPE_TENSOR_INFO);
    if (attr->message.tensorInfo == NULL)
        return acl_null(aclprofRangePushEx, "message.tensorInfo");
    uint64_t id = attr->message.tensorInfo->opNameId;
    const char *text = id <= UINT32_MAX ? blyi_name_text((uint32_t)id) : "";
    return acl_result(aclprofRangePushEx, blyi_range_push(text[0] ? text : unnamed, site));
}

aclError bly_acl_aclprofRangePop(void)
{
    uint32_t site = ACL_SITE();
    return acl_result(aclprofRangePop, blyi_range_pop(site));
}
