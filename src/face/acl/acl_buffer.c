/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_buffer.c - data buffers: an address and a size that belong to the program.
 *
 * A buffer is a handle: a stale or invented one is told apart without reading it.
 */
#include "base/handle.h"
#include "base/host.h"
#include "face/acl/acl_error.h"

struct buffer {
    void *data;
    size_t size;
};

aclDataBuffer *bly_acl_aclCreateDataBuffer(void *data, size_t size)
{
    struct buffer *buffer = blyi_host_alloc(sizeof(*buffer));
    void *handle = NULL;
    bly_status status =
        buffer == NULL
            ? blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for %zu bytes", sizeof(*buffer))
            : blyi_handle_create(BLYI_HANDLE_BUFFER, buffer, blyi_host_free, &handle);
    if (status != BLY_OK) {
        blyi_host_free(buffer);
        (void)acl_result(aclCreateDataBuffer, status);
        return NULL;
    }
    buffer->data = data;
    buffer->size = size;
    return handle;
}

aclError bly_acl_aclDestroyDataBuffer(const aclDataBuffer *dataBuffer)
{
    if (dataBuffer == NULL)
        return acl_null(aclDestroyDataBuffer, "dataBuffer");
    return acl_result(aclDestroyDataBuffer, blyi_handle_remove(BLYI_HANDLE_BUFFER, dataBuffer));
}

aclError bly_acl_aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data, size_t size)
{
    if (dataBuffer == NULL)
        return acl_null(aclUpdateDataBuffer, "dataBuffer");
    struct buffer *buffer = blyi_handle_get(BLYI_HANDLE_BUFFER, dataBuffer);
    if (buffer == NULL)
        return acl_result(aclUpdateDataBuffer, BLY_E_HANDLE);
    buffer->data = data;
    buffer->size = size;
    blyi_handle_put(dataBuffer);
    return ACL_SUCCESS;
}

static struct buffer read_buffer(const aclDataBuffer *handle)
{
    struct buffer copy = {NULL, 0};
    const struct buffer *buffer =
        handle == NULL ? NULL : blyi_handle_get(BLYI_HANDLE_BUFFER, handle);
    if (buffer != NULL) {
        copy = *buffer;
        blyi_handle_put(handle);
    }
    return copy;
}

void *bly_acl_aclGetDataBufferAddr(const aclDataBuffer *dataBuffer)
{
    return read_buffer(dataBuffer).data;
}

size_t bly_acl_aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer)
{
    return read_buffer(dataBuffer).size;
}

uint32_t bly_acl_aclGetDataBufferSize(const aclDataBuffer *dataBuffer)
{
    return (uint32_t)read_buffer(dataBuffer).size;
}
