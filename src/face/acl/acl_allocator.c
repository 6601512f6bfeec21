/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_allocator.c - descriptions of the program's allocators, and which stream has which.
 *
 * Lock: `lock` (rank FACE) guards the table and the content of descriptions; handles are pinned
 * under it, nothing of the card is called under it.
 */
#include <string.h>

#include "base/handle.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/map.h"
#include "face/acl/acl_error.h"
#include "face/acl/allocators.h"
#include "npu/stream.h"

struct description {
    aclrtAllocator object;
    aclrtAllocatorAllocFunc alloc;
    aclrtAllocatorFreeFunc free;
    aclrtAllocatorAllocAdviseFunc alloc_advise;
    aclrtAllocatorGetAddrFromBlockFunc get_addr;
};

struct registration {
    aclrtAllocatorDesc handle; /* as the program gave it; may be destroyed meanwhile */
    struct description copy;
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE);
static struct blyi_map registrations; /* stream handle -> struct registration */

aclrtAllocatorDesc bly_acl_aclrtAllocatorCreateDesc(void)
{
    struct description *description = blyi_host_calloc(1, sizeof(*description));
    void *handle = NULL;
    bly_status status =
        description == NULL
            ? blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for %zu bytes",
                        sizeof(*description))
            : blyi_handle_create(BLYI_HANDLE_OTHER, description, blyi_host_free, &handle);
    if (status != BLY_OK) {
        blyi_host_free(description);
        (void)acl_result(aclrtAllocatorCreateDesc, status);
        return NULL;
    }
    return handle;
}

aclError bly_acl_aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc)
{
    if (allocatorDesc == NULL)
        return acl_null(aclrtAllocatorDestroyDesc, "allocatorDesc");
    return acl_result(aclrtAllocatorDestroyDesc,
                      blyi_handle_remove(BLYI_HANDLE_OTHER, allocatorDesc));
}

/* Copies one field of a description. The caller has checked the value. */
static aclError set_field(enum blyi_acl_call call, aclrtAllocatorDesc handle, size_t offset,
                          const void *value, size_t size)
{
    struct description *description = blyi_handle_get(BLYI_HANDLE_OTHER, handle);
    if (description == NULL)
        return blyi_acl_result(call, BLY_E_HANDLE);
    blyi_lock_take(&lock);
    memcpy((char *)description + offset, value, size);
    blyi_lock_drop(&lock);
    blyi_handle_put(handle);
    return ACL_SUCCESS;
}

#define SET_FIELD(function, argument, field)                                                       \
    do {                                                                                           \
        if (allocatorDesc == NULL || argument == NULL)                                             \
            return acl_reject(function, ACL_ERROR_INVALID_PARAM, "%s is NULL",                     \
                              allocatorDesc == NULL ? "allocatorDesc" : #argument);                \
        return set_field(BLYI_ACL_CALL_##function, allocatorDesc,                                  \
                         offsetof(struct description, field), &argument, sizeof(argument));        \
    } while (0)

aclError bly_acl_aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc,
                                            aclrtAllocator allocator)
{
    SET_FIELD(aclrtAllocatorSetObjToDesc, allocator, object);
}

aclError bly_acl_aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                  aclrtAllocatorAllocFunc func)
{
    SET_FIELD(aclrtAllocatorSetAllocFuncToDesc, func, alloc);
}

aclError bly_acl_aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                 aclrtAllocatorFreeFunc func)
{
    SET_FIELD(aclrtAllocatorSetFreeFuncToDesc, func, free);
}

aclError bly_acl_aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                        aclrtAllocatorAllocAdviseFunc func)
{
    SET_FIELD(aclrtAllocatorSetAllocAdviseFuncToDesc, func, alloc_advise);
}

aclError bly_acl_aclrtAllocatorSetGetAddrFromBlockFuncToDesc(
    aclrtAllocatorDesc allocatorDesc, aclrtAllocatorGetAddrFromBlockFunc func)
{
    SET_FIELD(aclrtAllocatorSetGetAddrFromBlockFuncToDesc, func, get_addr);
}

/* A copy of what the handle describes now. */
static aclError read_description(aclrtAllocatorDesc handle, struct description *out)
{
    const struct description *description = blyi_handle_get(BLYI_HANDLE_OTHER, handle);
    if (description == NULL)
        return acl_reject(aclrtAllocatorRegister, ACL_ERROR_INVALID_PARAM, "allocatorDesc: %s",
                          "not a live description");
    blyi_lock_take(&lock);
    *out = *description;
    blyi_lock_drop(&lock);
    blyi_handle_put(handle);
    const char *missing = out->object == NULL     ? "object"
                          : out->alloc == NULL    ? "alloc function"
                          : out->free == NULL     ? "free function"
                          : out->get_addr == NULL ? "address function"
                                                  : NULL;
    if (missing != NULL)
        return acl_reject(aclrtAllocatorRegister, ACL_ERROR_INVALID_PARAM,
                          "allocatorDesc has no %s", missing);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc)
{
    if (stream == NULL || allocatorDesc == NULL)
        return acl_reject(aclrtAllocatorRegister, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          stream == NULL ? "stream" : "allocatorDesc");
    struct registration fresh = {.handle = allocatorDesc};
    aclError error = read_description(allocatorDesc, &fresh.copy);
    int32_t id;
    if (error == ACL_SUCCESS)
        error = acl_result(aclrtAllocatorRegister, blyi_stream_id(stream, &id));
    if (error != ACL_SUCCESS)
        return error;

    struct registration *registration = blyi_host_alloc(sizeof(*registration));
    bly_status status = BLY_E_HOST_MEMORY;
    void *replaced = NULL;
    if (registration != NULL) {
        *registration = fresh;
        blyi_lock_take(&lock);
        replaced = blyi_map_get(&registrations, (uint64_t)(uintptr_t)stream);
        status = blyi_map_put(&registrations, (uint64_t)(uintptr_t)stream, registration);
        blyi_lock_drop(&lock);
    }
    if (status == BLY_OK) {
        blyi_host_free(replaced);
        return ACL_SUCCESS;
    }
    blyi_host_free(registration);
    return acl_reject(aclrtAllocatorRegister, ACL_ERROR_BAD_ALLOC,
                      "the host has no memory for %zu bytes", sizeof(*registration));
}

aclError bly_acl_aclrtAllocatorGetByStream(aclrtStream stream, aclrtAllocatorDesc *allocatorDesc,
                                           aclrtAllocator *allocator,
                                           aclrtAllocatorAllocFunc *allocFunc,
                                           aclrtAllocatorFreeFunc *freeFunc,
                                           aclrtAllocatorAllocAdviseFunc *allocAdviseFunc,
                                           aclrtAllocatorGetAddrFromBlockFunc *getAddrFromBlockFunc)
{
    if (stream == NULL || allocatorDesc == NULL)
        return acl_reject(aclrtAllocatorGetByStream, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          stream == NULL ? "stream" : "allocatorDesc");
    struct registration found;
    blyi_lock_take(&lock);
    const struct registration *registration =
        blyi_map_get(&registrations, (uint64_t)(uintptr_t)stream);
    if (registration != NULL)
        found = *registration;
    blyi_lock_drop(&lock);
    if (registration == NULL)
        return acl_reject(aclrtAllocatorGetByStream, ACL_ERROR_INVALID_PARAM,
                          "no allocator is registered for stream %p", stream);
    *allocatorDesc = found.handle;
    if (allocator != NULL)
        *allocator = found.copy.object;
    if (allocFunc != NULL)
        *allocFunc = found.copy.alloc;
    if (freeFunc != NULL)
        *freeFunc = found.copy.free;
    if (allocAdviseFunc != NULL)
        *allocAdviseFunc = found.copy.alloc_advise;
    if (getAddrFromBlockFunc != NULL)
        *getAddrFromBlockFunc = found.copy.get_addr;
    return ACL_SUCCESS;
}

void blyi_allocators_forget(const void *stream)
{
    blyi_lock_take(&lock);
    void *registration = blyi_map_remove(&registrations, (uint64_t)(uintptr_t)stream);
    blyi_lock_drop(&lock);
    blyi_host_free(registration);
}

aclError bly_acl_aclrtAllocatorUnregister(aclrtStream stream)
{
    if (stream == NULL)
        return acl_null(aclrtAllocatorUnregister, "stream");
    blyi_allocators_forget(stream);
    return ACL_SUCCESS;
}
