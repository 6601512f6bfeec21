/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_config.c - descriptions of streams to be made.
 *
 * Lock: `lock` (rank FACE) guards the set of live objects and their content; nothing of the
 * card is called under it.
 */
#include "face/acl/stream_config.h"

#include <string.h>

#include "base/host.h"
#include "base/lock.h"
#include "base/map.h"
#include "face/acl/acl_error.h"

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);
static struct blyi_map live; /* address -> the object; zero is an empty map */

bool blyi_stream_config_read(const aclrtStreamConfigHandle *handle, aclrtStreamConfigHandle *out)
{
    blyi_lock_take(&lock);
    const aclrtStreamConfigHandle *config = blyi_map_get(&live, (uint64_t)(uintptr_t)handle);
    if (config != NULL)
        *out = *config;
    blyi_lock_drop(&lock);
    return config != NULL;
}

aclrtStreamConfigHandle *bly_acl_aclrtCreateStreamConfigHandle(void)
{
    aclrtStreamConfigHandle *config = blyi_host_calloc(1, sizeof(*config));
    bly_status status = BLY_E_HOST_MEMORY;
    if (config != NULL) {
        blyi_lock_take(&lock);
        status = blyi_map_put(&live, (uint64_t)(uintptr_t)config, config);
        blyi_lock_drop(&lock);
    }
    if (status == BLY_OK)
        return config;
    blyi_host_free(config);
    (void)acl_reject(aclrtCreateStreamConfigHandle, ACL_ERROR_BAD_ALLOC,
                     "the host has no memory for %zu bytes", sizeof(*config));
    return NULL;
}

aclError bly_acl_aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle *handle)
{
    if (handle == NULL)
        return acl_null(aclrtDestroyStreamConfigHandle, "handle");
    blyi_lock_take(&lock);
    void *config = blyi_map_remove(&live, (uint64_t)(uintptr_t)handle);
    blyi_lock_drop(&lock);
    if (config == NULL)
        return acl_reject(aclrtDestroyStreamConfigHandle, ACL_ERROR_INVALID_PARAM,
                          "handle %p is not from aclrtCreateStreamConfigHandle", (void *)handle);
    blyi_host_free(config);
    return ACL_SUCCESS;
}

/* Size of an attribute's value and its place; 0: no such attribute. */
static size_t attribute_place(aclrtStreamConfigAttr attr, size_t *offset)
{
    switch ((int)attr) {
    case ACL_RT_STREAM_WORK_ADDR_PTR:
        *offset = offsetof(aclrtStreamConfigHandle, workptr);
        return sizeof(void *);
    case ACL_RT_STREAM_WORK_SIZE:
        *offset = offsetof(aclrtStreamConfigHandle, workSize);
        return sizeof(size_t);
    case ACL_RT_STREAM_FLAG:
        *offset = offsetof(aclrtStreamConfigHandle, flag);
        return sizeof(size_t);
    case ACL_RT_STREAM_PRIORITY:
        *offset = offsetof(aclrtStreamConfigHandle, priority);
        return sizeof(uint32_t);
    default:
        return 0;
    }
}

aclError bly_acl_aclrtSetStreamConfigOpt(aclrtStreamConfigHandle *handle,
                                         aclrtStreamConfigAttr attr, const void *attrValue,
                                         size_t valueSize)
{
    if (handle == NULL || attrValue == NULL)
        return acl_reject(aclrtSetStreamConfigOpt, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          handle == NULL ? "handle" : "attrValue");
    size_t offset = 0;
    size_t size = attribute_place(attr, &offset);
    if (size == 0)
        return acl_reject(aclrtSetStreamConfigOpt, ACL_ERROR_INVALID_PARAM,
                          "attr %d is not in 0 .. 3", (int)attr);
    /* Public programs pass the flags as 32 bits, and are right to: flags are uint32_t elsewhere. */
    size_t flags = 0;
    if ((int)attr == ACL_RT_STREAM_FLAG && valueSize == sizeof(uint32_t)) {
        uint32_t narrow;
        memcpy(&narrow, attrValue, sizeof(narrow));
        flags = narrow;
        attrValue = &flags;
    } else if (valueSize != size)
        return acl_reject(aclrtSetStreamConfigOpt, ACL_ERROR_INVALID_PARAM,
                          "valueSize %zu of attr %d is not %zu", valueSize, (int)attr, size);
    blyi_lock_take(&lock);
    char *config = blyi_map_get(&live, (uint64_t)(uintptr_t)handle);
    if (config != NULL)
        memcpy(config + offset, attrValue, size);
    blyi_lock_drop(&lock);
    if (config == NULL)
        return acl_reject(aclrtSetStreamConfigOpt, ACL_ERROR_INVALID_PARAM,
                          "handle %p is not from aclrtCreateStreamConfigHandle", (void *)handle);
    return ACL_SUCCESS;
}
