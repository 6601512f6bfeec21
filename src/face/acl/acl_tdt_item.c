/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_tdt_item.c - data items: one tensor, or a mark between tensors. The data stays where it is.
 */
#include <string.h>

#include "base/handle.h"
#include "base/host.h"
#include "face/acl/tdt.h"

bly_status blyi_tdt_item_make(acltdtTensorType type, size_t n_dims, struct blyi_tdt_item **out,
                              void **handle)
{
    struct blyi_tdt_item *item =
        blyi_host_calloc(1, sizeof(*item) + n_dims * sizeof(item->dims[0]));
    if (item == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "the host has no memory for a data item");
    item->type = type;
    item->data_type = ACL_DT_UNDEFINED;
    item->n_dims = n_dims;
    bly_status status = blyi_handle_create(BLYI_HANDLE_DATA_ITEM, item, blyi_host_free, handle);
    if (status != BLY_OK)
        blyi_host_free(item);
    else
        *out = item;
    return status;
}

/* What a call returns that has recorded its message. */
static acltdtDataItem *no_item(aclError code)
{
    (void)code;
    return NULL;
}

acltdtDataItem *bly_acl_acltdtCreateDataItem(acltdtTensorType tdtType, const int64_t *dims,
                                             size_t dimNum, aclDataType dataType, void *data,
                                             size_t size)
{
    if ((dims == NULL) != (dimNum == 0))
        return no_item(acl_reject(acltdtCreateDataItem, ACL_ERROR_INVALID_PARAM,
                                  "dims is %s and dimNum %zu", dims == NULL ? "NULL" : "not NULL",
                                  dimNum));
    if (dimNum > BLYI_TDT_DIMS_MAX)
        return no_item(acl_reject(acltdtCreateDataItem, ACL_ERROR_INVALID_PARAM,
                                  "dimNum %zu is above %u", dimNum, BLYI_TDT_DIMS_MAX));
    bool is_tensor = tdtType == ACL_TENSOR_DATA_TENSOR;
    if (!is_tensor && dims != NULL)
        return no_item(acl_reject(acltdtCreateDataItem, ACL_ERROR_INVALID_PARAM,
                                  "an item of type %d has no dims", (int)tdtType));
    struct blyi_tdt_item *item;
    void *handle;
    bly_status status = blyi_tdt_item_make(tdtType, dimNum, &item, &handle);
    if (status != BLY_OK)
        return no_item(acl_result(acltdtCreateDataItem, status));
    if (is_tensor) {
        item->data_type = dataType;
        item->data = data;
        item->size = size;
        if (dims != NULL)
            memcpy(item->dims, dims, dimNum * sizeof(dims[0]));
    }
    return handle;
}

aclError bly_acl_acltdtDestroyDataItem(acltdtDataItem *dataItem)
{
    if (dataItem == NULL)
        return acl_null(acltdtDestroyDataItem, "dataItem");
    return acl_result(acltdtDestroyDataItem, blyi_handle_remove(BLYI_HANDLE_DATA_ITEM, dataItem));
}

/* ── What an item says: nothing on a handle that is none ──────────────────────────────────── */

#define GETTER(function, type, field, otherwise)                                                   \
    type bly_acl_##function(const acltdtDataItem *dataItem)                                        \
    {                                                                                              \
        const struct blyi_tdt_item *item =                                                         \
            dataItem == NULL ? NULL : blyi_handle_get(BLYI_HANDLE_DATA_ITEM, dataItem);            \
        if (item == NULL) {                                                                        \
            (void)(dataItem == NULL ? acl_null(function, "dataItem")                               \
                                    : acl_result(function, BLY_E_HANDLE));                         \
            return otherwise;                                                                      \
        }                                                                                          \
        type value = item->field;                                                                  \
        blyi_handle_put(dataItem);                                                                 \
        return value;                                                                              \
    }

GETTER(acltdtGetTensorTypeFromItem, acltdtTensorType, type, ACL_TENSOR_DATA_UNDEFINED)
GETTER(acltdtGetDataTypeFromItem, aclDataType, data_type, ACL_DT_UNDEFINED)
GETTER(acltdtGetDataAddrFromItem, void *, data, NULL)
GETTER(acltdtGetDataSizeFromItem, size_t, size, 0)
GETTER(acltdtGetDimNumFromItem, size_t, n_dims, 0)

aclError bly_acl_acltdtGetDimsFromItem(const acltdtDataItem *dataItem, int64_t *dims, size_t dimNum)
{
    if (dataItem == NULL)
        return acl_null(acltdtGetDimsFromItem, "dataItem");
    if ((dims == NULL) != (dimNum == 0))
        return acl_reject(acltdtGetDimsFromItem, ACL_ERROR_INVALID_PARAM,
                          "dims is %s and dimNum %zu", dims == NULL ? "NULL" : "not NULL", dimNum);
    const struct blyi_tdt_item *item = blyi_handle_get(BLYI_HANDLE_DATA_ITEM, dataItem);
    if (item == NULL)
        return acl_result(acltdtGetDimsFromItem, BLY_E_HANDLE);
    aclError error = ACL_SUCCESS;
    if (dimNum < item->n_dims)
        error = acl_reject(acltdtGetDimsFromItem, ACL_ERROR_INVALID_PARAM,
                           "dimNum %zu is below the item's %zu dims", dimNum, item->n_dims);
    else if (dims != NULL)
        memcpy(dims, item->dims, item->n_dims * sizeof(dims[0]));
    blyi_handle_put(dataItem);
    return error;
}

aclError bly_acl_acltdtGetSliceInfoFromItem(const acltdtDataItem *dataItem, size_t *sliceNum,
                                            size_t *sliceId)
{
    if (dataItem == NULL)
        return acl_null(acltdtGetSliceInfoFromItem, "dataItem");
    if (sliceNum == NULL)
        return acl_null(acltdtGetSliceInfoFromItem, "sliceNum");
    if (sliceId == NULL)
        return acl_null(acltdtGetSliceInfoFromItem, "sliceId");
    const struct blyi_tdt_item *item = blyi_handle_get(BLYI_HANDLE_DATA_ITEM, dataItem);
    if (item == NULL)
        return acl_result(acltdtGetSliceInfoFromItem, BLY_E_HANDLE);
    *sliceNum = item->n_slices;
    *sliceId = item->slice;
    blyi_handle_put(dataItem);
    return ACL_SUCCESS;
}
