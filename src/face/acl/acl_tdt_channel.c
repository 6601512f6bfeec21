/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_tdt_channel.c - channels: queues of a card whose messages are datasets.
 *
 * The dataset is copied as it is sent: the program may change or free its tensors at once. What
 * is received lies in the message, which the dataset that received it keeps.
 */
#include <inttypes.h>

#include "base/handle.h"
#include "base/host.h"
#include "face/acl/check.h"
#include "face/acl/tdt.h"
#include "npu/card.h"
#include "npu/mbuf_inside.h"
#include "npu/mem_queue.h"
#include "npu/runtime.h"

struct channel {
    struct blyi_queue_ref queue;
};

static bly_status make_channel(int card, const char *name, uint32_t capacity, uint32_t site,
                               void **handle)
{
    struct channel *channel = blyi_host_calloc(1, sizeof(*channel));
    if (channel == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for a channel");
    channel->queue.card = card;
    channel->queue.channel = true;
    bly_status status = blyi_mem_queue_create(card, name, capacity, true, site, &channel->queue.id);
    if (status != BLY_OK) {
        blyi_host_free(channel);
        return status;
    }
    status = blyi_handle_create(BLYI_HANDLE_CHANNEL, channel, blyi_host_free, handle);
    if (status != BLY_OK) {
        (void)blyi_mem_queue_destroy(channel->queue);
        blyi_host_free(channel);
    }
    return status;
}

acltdtChannelHandle *bly_acl_acltdtCreateChannelWithCapacity(uint32_t deviceId, const char *name,
                                                             size_t capacity)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtCreateChannelWithCapacity;
    uint32_t site = ACL_SITE();
    struct blyi_card *card;
    void *handle = NULL;
    if (name == NULL) {
        (void)acl_null(acltdtCreateChannelWithCapacity, "name");
        return NULL;
    }
    if (blyi_acl_open_device(call, deviceId, ACL_ERROR_RT_INVALID_DEVICEID, &card) != ACL_SUCCESS)
        return NULL;
    if (capacity > UINT32_MAX)
        capacity = UINT32_MAX; /* refused there, with the bounds */
    bly_status status = make_channel(card->id, name, (uint32_t)capacity, site, &handle);
    if (status != BLY_OK) {
        (void)acl_result(acltdtCreateChannelWithCapacity, status);
        return NULL;
    }
    return handle;
}

/* The queue of a channel; the handle may go meanwhile, then the queue is gone as well. */
static aclError queue_of(enum blyi_acl_call call, const acltdtChannelHandle *handle,
                         struct blyi_queue_ref *queue)
{
    if (handle == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "handle is NULL");
    const struct channel *channel = blyi_handle_get(BLYI_HANDLE_CHANNEL, handle);
    if (channel == NULL)
        return blyi_acl_fail(call, BLY_E_HANDLE);
    *queue = channel->queue;
    blyi_handle_put(handle);
    return ACL_SUCCESS;
}

aclError bly_acl_acltdtDestroyChannel(acltdtChannelHandle *handle)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtDestroyChannel;
    struct blyi_queue_ref queue = {0};
    aclError error = queue_of(call, handle, &queue);
    if (error != ACL_SUCCESS)
        return error;
    bly_status status = blyi_handle_remove(BLYI_HANDLE_CHANNEL, handle);
    if (status == BLY_OK)
        status = blyi_mem_queue_destroy(queue);
    return blyi_acl_result(call, status);
}

/* The calls that wait for room or for a message come back. */
aclError bly_acl_acltdtStopChannel(acltdtChannelHandle *handle)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtStopChannel;
    struct blyi_queue_ref queue = {0};
    aclError error = queue_of(call, handle, &queue);
    return error != ACL_SUCCESS ? error : blyi_acl_result(call, blyi_mem_queue_wake(queue));
}

aclError bly_acl_acltdtCleanChannel(acltdtChannelHandle *handle)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtCleanChannel;
    struct blyi_queue_ref queue = {0};
    aclError error = queue_of(call, handle, &queue);
    return error != ACL_SUCCESS ? error : blyi_acl_result(call, blyi_mem_queue_clean(queue));
}

aclError bly_acl_acltdtQueryChannelSize(const acltdtChannelHandle *handle, size_t *size)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtQueryChannelSize;
    struct blyi_queue_ref queue = {0};
    uint32_t n = 0;
    if (size == NULL)
        return acl_null(acltdtQueryChannelSize, "size");
    aclError error = queue_of(call, handle, &queue);
    if (error == ACL_SUCCESS)
        error = blyi_acl_result(call, blyi_mem_queue_size(queue, &n));
    if (error == ACL_SUCCESS)
        *size = n;
    return error;
}

static aclError check_call(enum blyi_acl_call call, const acltdtChannelHandle *handle,
                           const acltdtDataset *dataset, int32_t timeout,
                           struct blyi_queue_ref *queue, uint64_t *deadline)
{
    aclError error = blyi_acl_result(call, blyi_runtime_check());
    if (error == ACL_SUCCESS)
        error = queue_of(call, handle, queue);
    if (error == ACL_SUCCESS && dataset == NULL)
        error = blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "dataset is NULL");
    if (error == ACL_SUCCESS && !blyi_mem_queue_deadline(timeout, deadline))
        error = blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                                "timeout %" PRId32 " ms is below -1 (no limit)", timeout);
    return error;
}

aclError bly_acl_acltdtSendTensor(const acltdtChannelHandle *handle, const acltdtDataset *dataset,
                                  int32_t timeout)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtSendTensor;
    struct blyi_queue_ref queue = {0};
    uint64_t deadline;
    struct blyi_mbuf *message = NULL;
    aclError error = check_call(call, handle, dataset, timeout, &queue, &deadline);
    if (error != ACL_SUCCESS)
        return error;
    bly_status status = blyi_tdt_pack(dataset, &message);
    if (status == BLY_OK) {
        status = blyi_mem_queue_put(queue, message, deadline);
        if (status != BLY_OK)
            blyi_mbuf_drop(message);
    }
    return blyi_acl_result(call, status);
}

/* A message that cannot be handed on goes back to its place. */
static bly_status receive(struct blyi_queue_ref queue, acltdtDataset *dataset, uint64_t deadline)
{
    struct blyi_mbuf *message;
    void **items = NULL;
    size_t n = 0;
    bly_status status = blyi_tdt_dataset_check(dataset);
    if (status == BLY_OK)
        status = blyi_mem_queue_take(queue, &message, deadline);
    if (status != BLY_OK)
        return status;
    status = blyi_tdt_unpack(message, &items, &n);
    if (status == BLY_OK) {
        status = blyi_tdt_dataset_fill(dataset, items, n, message);
        if (status != BLY_OK)
            blyi_tdt_items_drop(items, n);
    }
    if (status != BLY_OK && blyi_mem_queue_untake(queue, message) != BLY_OK)
        blyi_mbuf_drop(message);
    return status;
}

aclError bly_acl_acltdtReceiveTensor(const acltdtChannelHandle *handle, acltdtDataset *dataset,
                                     int32_t timeout)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_acltdtReceiveTensor;
    struct blyi_queue_ref queue = {0};
    uint64_t deadline;
    aclError error = check_call(call, handle, dataset, timeout, &queue, &deadline);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, receive(queue, dataset, deadline));
}
