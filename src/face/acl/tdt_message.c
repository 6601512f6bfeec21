/* SPDX-License-Identifier: Apache-2.0
 *
 * tdt_message.c - a dataset as one message, and back.
 *
 *     [ n | record 0, dims | record 1, dims | ... | data 0 | data 1 | ... ]    data 64-aligned
 *
 * A channel's messages are made and read here alone, in this process.
 */
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "base/handle.h"
#include "base/host.h"
#include "face/acl/tdt.h"
#include "npu/copy.h"
#include "npu/mbuf_inside.h"

struct record {
    uint64_t size, data_at; /* data_at: from the start of the message */
    uint32_t n_dims;
    int32_t type, data_type;
    uint16_t n_slices, slice;
    /* then the dims, 8 bytes each */
};

static bly_status check_item(const struct blyi_tdt_item *item, size_t index)
{
    if (item->type != ACL_TENSOR_DATA_TENSOR && item->type != ACL_TENSOR_DATA_END_OF_SEQUENCE &&
        item->type != ACL_TENSOR_DATA_ABNORMAL)
        return blyi_fail(BLY_E_PARSE, "item %zu is of type %d: types 0, 1 and 2 can be sent", index,
                         (int)item->type);
    if (item->size > 0 && item->data == NULL)
        return blyi_fail(BLY_E_INVALID, "item %zu has %" PRIu64 " bytes and no address", index,
                         item->size);
    if (item->size > BLYI_MBUF_SIZE_MAX)
        return blyi_fail(BLY_E_INVALID, "item %zu has %" PRIu64 " bytes: at most %" PRIu64, index,
                         item->size, BLYI_MBUF_SIZE_MAX);
    return BLY_OK;
}

struct packing {
    void **handles;
    struct blyi_tdt_item **items;
    size_t n_pinned;
    uint64_t data_at, size; /* where the first data begins, and the end */
};

static bly_status pin_items(struct packing *packing, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct blyi_tdt_item *item = blyi_handle_get(BLYI_HANDLE_DATA_ITEM, packing->handles[i]);
        if (item == NULL)
            return BLY_E_HANDLE;
        packing->items[packing->n_pinned++] = item;
        bly_status status = check_item(item, i);
        if (status != BLY_OK)
            return status;
    }
    return BLY_OK;
}

/* Sizes cannot wrap: an item has at most 4 GiB, and there are fewer than 2^20. */
static void measure(struct packing *packing)
{
    packing->data_at = sizeof(uint64_t);
    for (size_t i = 0; i < packing->n_pinned; i++)
        packing->data_at += sizeof(struct record) + packing->items[i]->n_dims * sizeof(int64_t);
    packing->size = packing->data_at;
    for (size_t i = 0; i < packing->n_pinned; i++)
        packing->size = blyi_align_up(packing->size, BLYI_CACHE_LINE) + packing->items[i]->size;
}

static bly_status write_items(const struct packing *packing, unsigned char *bytes)
{
    uint64_t n = packing->n_pinned, at = sizeof(n), data_at = packing->data_at;
    memcpy(bytes, &n, sizeof(n));
    for (size_t i = 0; i < packing->n_pinned; i++) {
        const struct blyi_tdt_item *item = packing->items[i];
        data_at = blyi_align_up(data_at, BLYI_CACHE_LINE);
        struct record record = {item->size,
                                data_at,
                                (uint32_t)item->n_dims,
                                (int32_t)item->type,
                                (int32_t)item->data_type,
                                item->n_slices,
                                item->slice};
        memcpy(bytes + at, &record, sizeof(record));
        at += sizeof(record);
        memcpy(bytes + at, item->dims, item->n_dims * sizeof(int64_t));
        at += item->n_dims * sizeof(int64_t);
        bly_status status =
            item->size == 0 ? BLY_OK : blyi_copy_own(bytes + data_at, item->data, item->size);
        if (status != BLY_OK)
            return status;
        data_at += item->size;
    }
    return BLY_OK;
}

static bly_status make_message(struct packing *packing, size_t n, struct blyi_mbuf **out)
{
    bly_status status = pin_items(packing, n);
    if (status != BLY_OK)
        return status;
    measure(packing);
    struct blyi_mbuf *message;
    status = blyi_mbuf_make(packing->size, false, &message);
    if (status != BLY_OK)
        return status;
    message->length = packing->size;
    status = write_items(packing, blyi_mbuf_bytes(message));
    if (status == BLY_OK)
        *out = message;
    else
        blyi_mbuf_drop(message);
    return status;
}

bly_status blyi_tdt_pack(const void *dataset, struct blyi_mbuf **message)
{
    struct packing packing = {0};
    size_t n;
    bly_status status = blyi_tdt_dataset_items(dataset, &packing.handles, &n);
    if (status != BLY_OK)
        return status;
    if (n == 0)
        status = blyi_fail(BLY_E_INVALID, "the dataset has no item");
    if (status == BLY_OK)
        packing.items = blyi_host_calloc(n, sizeof(void *));
    if (status == BLY_OK && packing.items == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a list of %zu items", n);
    if (status == BLY_OK)
        status = make_message(&packing, n, message);
    for (size_t i = 0; i < packing.n_pinned; i++)
        blyi_handle_put(packing.handles[i]);
    blyi_host_free(packing.items);
    blyi_host_free(packing.handles);
    return status;
}

static bly_status read_item(unsigned char *bytes, uint64_t *at, void **handle)
{
    struct record record;
    struct blyi_tdt_item *item;
    memcpy(&record, bytes + *at, sizeof(record));
    bly_status status =
        blyi_tdt_item_make((acltdtTensorType)record.type, record.n_dims, &item, handle);
    if (status != BLY_OK)
        return status;
    *at += sizeof(record);
    memcpy(item->dims, bytes + *at, record.n_dims * sizeof(int64_t));
    *at += record.n_dims * sizeof(int64_t);
    item->data_type = (aclDataType)record.data_type;
    item->size = record.size;
    item->data = record.size > 0 ? bytes + record.data_at : NULL;
    item->n_slices = record.n_slices;
    item->slice = record.slice;
    return BLY_OK;
}

bly_status blyi_tdt_unpack(const struct blyi_mbuf *message, void ***items, size_t *n)
{
    unsigned char *bytes = blyi_mbuf_bytes(message);
    uint64_t count, at = sizeof(count);
    memcpy(&count, bytes, sizeof(count));
    void **handles = blyi_host_calloc(count, sizeof(handles[0]));
    if (handles == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a list of %" PRIu64 " items",
                         count);
    for (uint64_t i = 0; i < count; i++) {
        bly_status status = read_item(bytes, &at, &handles[i]);
        if (status != BLY_OK) {
            blyi_tdt_items_drop(handles, i);
            return status;
        }
    }
    *items = handles;
    *n = count;
    return BLY_OK;
}
