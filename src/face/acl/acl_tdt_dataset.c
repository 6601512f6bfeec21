/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_tdt_dataset.c - datasets: lists of items. Those that a program added stay its own; those
 * that were received belong to the dataset, with the message in which their data lies.
 */
#include <string.h>

#include "base/handle.h"
#include "base/host.h"
#include "base/lock.h"
#include "face/acl/tdt.h"
#include "npu/mbuf_inside.h"
#include "npu/memory.h"
#include "npu/runtime.h"

enum where { WHERE_UNKNOWN, WHERE_HOST, WHERE_CARD };

struct dataset {
    void **items;
    size_t n, capacity;
    enum where where; /* the data of added items lies */
    bool received;
    struct blyi_mbuf *message;
    char name[1]; /* only a card's sender gives names */
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE); /* all datasets */

void blyi_tdt_items_drop(void **items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (blyi_handle_remove(BLYI_HANDLE_DATA_ITEM, items[i]) != BLY_OK)
            blyi_fail_clear(); /* the program did it */
    }
    blyi_host_free(items);
}

static void dataset_gone(void *object)
{
    struct dataset *dataset = object;
    blyi_tdt_items_drop(dataset->items, dataset->received ? dataset->n : 0);
    blyi_mbuf_drop(dataset->message);
    blyi_host_free(dataset);
}

acltdtDataset *bly_acl_acltdtCreateDataset(void)
{
    struct dataset *dataset = blyi_host_calloc(1, sizeof(*dataset));
    void *handle = NULL;
    bly_status status =
        dataset == NULL ? blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for a dataset")
                        : blyi_handle_create(BLYI_HANDLE_DATASET, dataset, dataset_gone, &handle);
    if (status != BLY_OK) {
        blyi_host_free(dataset);
        (void)acl_result(acltdtCreateDataset, status);
        return NULL;
    }
    return handle;
}

aclError bly_acl_acltdtDestroyDataset(acltdtDataset *dataset)
{
    if (dataset == NULL)
        return acl_null(acltdtDestroyDataset, "dataset");
    return acl_result(acltdtDestroyDataset, blyi_handle_remove(BLYI_HANDLE_DATASET, dataset));
}

/* The dataset behind a handle, pinned; NULL: its code is recorded, and in *error. */
static struct dataset *pin(enum blyi_acl_call call, const acltdtDataset *handle, aclError *error)
{
    struct dataset *dataset = NULL;
    if (handle == NULL) {
        *error = blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "dataset is NULL");
        return NULL;
    }
    bly_status status = blyi_runtime_check();
    if (status == BLY_OK && (dataset = blyi_handle_get(BLYI_HANDLE_DATASET, handle)) == NULL)
        status = BLY_E_HANDLE;
    *error = blyi_acl_result(call, status);
    return dataset;
}

static bool grow_locked(struct dataset *dataset)
{
    if (dataset->n < dataset->capacity)
        return true;
    size_t capacity = dataset->capacity == 0 ? 8 : 2 * dataset->capacity;
    void **items = blyi_host_realloc(dataset->items, capacity * sizeof(items[0]));
    if (items == NULL)
        return false;
    dataset->items = items;
    dataset->capacity = capacity;
    return true;
}

static aclError add_locked(struct dataset *dataset, void *item, enum where where)
{
    if (dataset->received)
        return acl_reject(acltdtAddDataItem, ACL_ERROR_FEATURE_UNSUPPORTED,
                          "the dataset has %zu items that were received: none can be added",
                          dataset->n);
    if (where != WHERE_UNKNOWN && dataset->where != WHERE_UNKNOWN && where != dataset->where)
        return acl_reject(acltdtAddDataItem, ACL_ERROR_INVALID_PARAM,
                          "the item's data lies on the %s, that of the dataset on the %s",
                          where == WHERE_CARD ? "card" : "host",
                          where == WHERE_CARD ? "host" : "card");
    if (!grow_locked(dataset))
        return acl_reject(acltdtAddDataItem, ACL_ERROR_BAD_ALLOC,
                          "the host has no memory for item %zu", dataset->n);
    if (where != WHERE_UNKNOWN)
        dataset->where = where;
    dataset->items[dataset->n++] = item;
    return ACL_SUCCESS;
}

aclError bly_acl_acltdtAddDataItem(acltdtDataset *dataset, acltdtDataItem *dataItem)
{
    aclError error;
    if (dataItem == NULL)
        return acl_null(acltdtAddDataItem, "dataItem");
    struct dataset *known = pin(BLYI_ACL_CALL_acltdtAddDataItem, dataset, &error);
    if (known == NULL)
        return error;
    const struct blyi_tdt_item *item = blyi_handle_get(BLYI_HANDLE_DATA_ITEM, dataItem);
    if (item == NULL) {
        blyi_handle_put(dataset);
        return acl_result(acltdtAddDataItem, BLY_E_HANDLE);
    }
    enum where where = item->data == NULL                                   ? WHERE_UNKNOWN
                       : blyi_place_of(item->data, NULL) == BLYI_PLACE_CARD ? WHERE_CARD
                                                                            : WHERE_HOST;
    blyi_handle_put(dataItem);
    blyi_lock_take(&lock);
    error = add_locked(known, dataItem, where);
    blyi_lock_drop(&lock);
    blyi_handle_put(dataset);
    return error;
}

acltdtDataItem *bly_acl_acltdtGetDataItem(const acltdtDataset *dataset, size_t index)
{
    aclError error;
    const struct dataset *known = pin(BLYI_ACL_CALL_acltdtGetDataItem, dataset, &error);
    if (known == NULL)
        return NULL;
    blyi_lock_take(&lock);
    size_t n = known->n;
    void *item = index < n ? known->items[index] : NULL;
    blyi_lock_drop(&lock);
    blyi_handle_put(dataset);
    if (item == NULL)
        (void)acl_reject(acltdtGetDataItem, ACL_ERROR_INVALID_PARAM,
                         "index %zu: the dataset has %zu items", index, n);
    return item;
}

size_t bly_acl_acltdtGetDatasetSize(const acltdtDataset *dataset)
{
    aclError error;
    const struct dataset *known = pin(BLYI_ACL_CALL_acltdtGetDatasetSize, dataset, &error);
    if (known == NULL)
        return 0;
    blyi_lock_take(&lock);
    size_t n = known->n;
    blyi_lock_drop(&lock);
    blyi_handle_put(dataset);
    return n;
}

const char *bly_acl_acltdtGetDatasetName(const acltdtDataset *dataset)
{
    aclError error;
    const struct dataset *known = pin(BLYI_ACL_CALL_acltdtGetDatasetName, dataset, &error);
    if (known == NULL)
        return NULL;
    blyi_handle_put(dataset);
    return known->name; /* lives as long as the dataset */
}

/* ── For channels ─────────────────────────────────────────────────────────────────────────── */

bly_status blyi_tdt_dataset_items(const void *handle, void ***items, size_t *n)
{
    const struct dataset *dataset = blyi_handle_get(BLYI_HANDLE_DATASET, handle);
    if (dataset == NULL)
        return BLY_E_HANDLE;
    bly_status status = BLY_OK;
    blyi_lock_take(&lock);
    size_t count = dataset->n;
    void **copy = blyi_host_alloc((count + 1) * sizeof(copy[0]));
    if (copy == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a list of %zu items", count);
    else if (count > 0)
        memcpy(copy, dataset->items, count * sizeof(copy[0]));
    blyi_lock_drop(&lock);
    blyi_handle_put(handle);
    if (status == BLY_OK) {
        *items = copy;
        *n = count;
    }
    return status;
}

static bly_status check_locked(const struct dataset *dataset)
{
    if (dataset->n == 0 || dataset->received)
        return BLY_OK;
    return blyi_fail(BLY_E_PARSE,
                     "the dataset has %zu items that were added: nothing can be received into it",
                     dataset->n);
}

bly_status blyi_tdt_dataset_check(const void *handle)
{
    const struct dataset *dataset = blyi_handle_get(BLYI_HANDLE_DATASET, handle);
    if (dataset == NULL)
        return BLY_E_HANDLE;
    blyi_lock_take(&lock);
    bly_status status = check_locked(dataset);
    blyi_lock_drop(&lock);
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_tdt_dataset_fill(const void *handle, void **items, size_t n,
                                 struct blyi_mbuf *message)
{
    struct dataset *dataset = blyi_handle_get(BLYI_HANDLE_DATASET, handle);
    if (dataset == NULL)
        return BLY_E_HANDLE;
    struct dataset before = {0};
    blyi_lock_take(&lock);
    bly_status status = check_locked(dataset);
    if (status == BLY_OK) {
        before = *dataset;
        dataset->items = items;
        dataset->n = dataset->capacity = n;
        dataset->received = true;
        dataset->message = message;
    }
    blyi_lock_drop(&lock);
    blyi_handle_put(handle);
    blyi_tdt_items_drop(before.items, before.n);
    blyi_mbuf_drop(before.message);
    return status;
}
