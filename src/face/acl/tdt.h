/* SPDX-License-Identifier: Apache-2.0
 *
 * tdt.h - tensors on their way through channels: items, datasets, and their form in a message.
 */
#ifndef BLYI_ACL_TDT_H
#define BLYI_ACL_TDT_H

#include <acl/acl_tdt.h>

#include "face/acl/acl_error.h"

#define BLYI_TDT_DIMS_MAX 128u

struct blyi_mbuf;

struct blyi_tdt_item {
    acltdtTensorType type;
    aclDataType data_type;
    void *data; /* the program's, or inside the message that its dataset keeps */
    uint64_t size;
    uint16_t n_slices, slice;
    size_t n_dims;
    int64_t dims[];
};

/* A handle of its own, with space for the dims, which the caller fills before others know it.
 * E_HOST_MEMORY. */
bly_status blyi_tdt_item_make(acltdtTensorType type, size_t n_dims, struct blyi_tdt_item **item,
                              void **handle);

/* The handles of a dataset's items, copied; blyi_host_free() them. E_HANDLE, E_HOST_MEMORY. */
bly_status blyi_tdt_dataset_items(const void *dataset, void ***items, size_t *n);
/* Whether what is received may be put into it: it is empty, or has what was received before. */
bly_status blyi_tdt_dataset_check(const void *dataset);
/* Puts what was received in place of that: on success dataset owns items, list and message. */
bly_status blyi_tdt_dataset_fill(const void *dataset, void **items, size_t n,
                                 struct blyi_mbuf *message);

/* A message of all items; data is copied from host or card. E_INVALID: no item, an item that
 * cannot be sent; E_HANDLE, E_FAULT, E_HOST_MEMORY. */
bly_status blyi_tdt_pack(const void *dataset, struct blyi_mbuf **message);
/* The items of a message, whose data stays in it. E_HOST_MEMORY. */
bly_status blyi_tdt_unpack(const struct blyi_mbuf *message, void ***items, size_t *n);
void blyi_tdt_items_drop(void **items, size_t n);

#endif
