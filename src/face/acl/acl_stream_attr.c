/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_stream_attr.c - attributes of a stream.
 *
 *   failure mode    as aclrtSetStreamFailureMode, but not for a default stream
 *   overflow check  whether kernels are looked at for overflow (acl_overflow.c)
 *   user tag        kept and read back
 *   cache op info   kept and read back
 *   priority        that of the creation; another one is refused
 *
 * Lock: `lock` (rank FACE) guards the table; nothing of the card is called under it.
 */
#include <inttypes.h>

#include "base/host.h"
#include "base/lock.h"
#include "base/map.h"
#include "face/acl/check.h"
#include "face/acl/stream_attr.h"
#include "npu/abort.h"
#include "npu/stream.h"

struct attributes {
    uint32_t overflow_check, user_tag, cache_op_info;
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);
static struct blyi_map table; /* stream handle -> struct attributes; absent: all 0 */

static bool any_overflow_check; /* atomic */

/* The live stream that `stream` names, NULL being the default one of the context. */
static aclError check_stream(enum blyi_acl_call call, aclrtStream *stream)
{
    int32_t id;
    if (*stream == NULL)
        return blyi_acl_check_default(call, stream, NULL);
    return blyi_acl_result(call, blyi_stream_id(*stream, &id));
}

static struct attributes read_attributes(const void *stream)
{
    struct attributes copy = {0};
    blyi_lock_take(&lock);
    const struct attributes *found = blyi_map_get(&table, (uint64_t)(uintptr_t)stream);
    if (found != NULL)
        copy = *found;
    blyi_lock_drop(&lock);
    return copy;
}

bool blyi_acl_any_overflow_switch(void)
{
    return __atomic_load_n(&any_overflow_check, __ATOMIC_RELAXED);
}

bool blyi_acl_overflow_switch(void *stream)
{
    if (stream == NULL)
        (void)blyi_context_here_default(&stream, NULL);
    return read_attributes(stream).overflow_check != 0;
}

/* The attributes of a stream, made when there are none; NULL: no host memory. */
static struct attributes *find_or_make_locked(const void *stream)
{
    uint64_t key = (uint64_t)(uintptr_t)stream;
    struct attributes *found = blyi_map_get(&table, key);
    if (found != NULL)
        return found;
    found = blyi_host_calloc(1, sizeof(*found));
    if (found != NULL && blyi_map_put(&table, key, found) != BLY_OK) {
        blyi_host_free(found);
        found = NULL;
    }
    return found;
}

static aclError store(enum blyi_acl_call call, const void *stream, aclrtStreamAttr attr,
                      uint32_t value)
{
    if (attr == ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK && value != 0)
        __atomic_store_n(&any_overflow_check, true, __ATOMIC_RELAXED);
    blyi_lock_take(&lock);
    struct attributes *attributes = find_or_make_locked(stream);
    if (attributes != NULL && attr == ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK)
        attributes->overflow_check = value;
    else if (attributes != NULL && attr == ACL_STREAM_ATTR_USER_CUSTOM_TAG)
        attributes->user_tag = value;
    else if (attributes != NULL)
        attributes->cache_op_info = value;
    blyi_lock_drop(&lock);
    if (attributes == NULL)
        return blyi_acl_reject(call, ACL_ERROR_RT_MEMORY_ALLOCATION,
                               "the host has no memory for %zu bytes", sizeof(*attributes));
    return ACL_SUCCESS;
}

static aclError store_switch(enum blyi_acl_call call, const void *stream, aclrtStreamAttr attr,
                             uint32_t value)
{
    if (value > 1)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "the value %" PRIu32 " of attribute %d is not 0 or 1", value,
                               (int)attr);
    return store(call, stream, attr, value);
}

static aclError set_priority(enum blyi_acl_call call, void *stream, uint32_t priority)
{
    uint32_t current;
    aclError error = blyi_acl_result(call, blyi_stream_priority(stream, &current));
    if (error == ACL_SUCCESS && priority > 7)
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                "priority %" PRIu32 " is not in 0 .. 7", priority);
    if (error == ACL_SUCCESS && priority != current)
        error = blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                                "priority %" PRIu32 ": a stream keeps the priority of its "
                                "creation, %" PRIu32,
                                priority, current);
    return error;
}

aclError bly_acl_aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                         aclrtStreamAttrValue *value)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtSetStreamAttribute;
    if (value == NULL)
        return acl_null(aclrtSetStreamAttribute, "value");
    if ((int)stmAttrType < ACL_STREAM_ATTR_FAILURE_MODE ||
        (int)stmAttrType > ACL_STREAM_ATTR_PRIORITY)
        return acl_reject(aclrtSetStreamAttribute, ACL_ERROR_INVALID_PARAM,
                          "stmAttrType %d is not in 1 .. 5", (int)stmAttrType);
    if (stmAttrType == ACL_STREAM_ATTR_FAILURE_MODE)
        return blyi_acl_set_failure_mode(call, stream, value->failureMode, false);
    aclError error = check_stream(call, &stream);
    if (error != ACL_SUCCESS)
        return error;
    switch (stmAttrType) {
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
        return store(call, stream, stmAttrType, value->userCustomTag);
    case ACL_STREAM_ATTR_PRIORITY:
        return set_priority(call, stream, value->streamPriority);
    default:
        return store_switch(call, stream, stmAttrType, value->overflowSwitch);
    }
}

aclError bly_acl_aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                         aclrtStreamAttrValue *value)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtGetStreamAttribute;
    if (value == NULL)
        return acl_null(aclrtGetStreamAttribute, "value");
    if ((int)stmAttrType < ACL_STREAM_ATTR_FAILURE_MODE ||
        (int)stmAttrType > ACL_STREAM_ATTR_PRIORITY)
        return acl_reject(aclrtGetStreamAttribute, ACL_ERROR_INVALID_PARAM,
                          "stmAttrType %d is not in 1 .. 5", (int)stmAttrType);
    aclError error = check_stream(call, &stream);
    if (error != ACL_SUCCESS)
        return error;
    aclrtStreamAttrValue found = {.reserve = {0}};
    struct attributes attributes = read_attributes(stream);
    uint32_t mode = 0;
    if (stmAttrType == ACL_STREAM_ATTR_PRIORITY)
        error = blyi_acl_result(call, blyi_stream_priority(stream, &found.streamPriority));
    else if (stmAttrType == ACL_STREAM_ATTR_FAILURE_MODE) {
        error = blyi_acl_result(call, blyi_stream_failure_mode(stream, &mode));
        found.failureMode = mode;
    } else if (stmAttrType == ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK)
        found.overflowSwitch = attributes.overflow_check;
    else if (stmAttrType == ACL_STREAM_ATTR_USER_CUSTOM_TAG)
        found.userCustomTag = attributes.user_tag;
    else if (stmAttrType == ACL_STREAM_ATTR_CACHE_OP_INFO)
        found.cacheOpInfoSwitch = attributes.cache_op_info;
    if (error == ACL_SUCCESS)
        *value = found;
    return error;
}

aclError bly_acl_aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtSetStreamOverflowSwitch;
    aclError error = check_stream(call, &stream);
    if (error != ACL_SUCCESS)
        return error;
    return store_switch(call, stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, flag);
}

aclError bly_acl_aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag)
{
    if (flag == NULL)
        return acl_null(aclrtGetStreamOverflowSwitch, "flag");
    aclError error = check_stream(BLYI_ACL_CALL_aclrtGetStreamOverflowSwitch, &stream);
    if (error == ACL_SUCCESS)
        *flag = read_attributes(stream).overflow_check;
    return error;
}

void blyi_stream_attr_forget(const void *stream)
{
    blyi_lock_take(&lock);
    void *attributes = blyi_map_remove(&table, (uint64_t)(uintptr_t)stream);
    blyi_lock_drop(&lock);
    blyi_host_free(attributes);
}
