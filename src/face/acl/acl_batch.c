/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_batch.c - many copies of one direction in a call.
 */
#include <stdint.h>

#include "face/acl/check.h"
#include "npu/copy.h"
#include "npu/memory.h"

struct batch {
    enum blyi_acl_call call;
    void **dsts, **srcs;
    size_t *dst_max, *sizes;
    size_t n;
    const aclrtMemcpyBatchAttr *attrs;
    const size_t *attr_indexes;
    size_t n_attrs;
};

static aclError check_attrs(const struct batch *b)
{
    if (b->attrs == NULL || b->attr_indexes == NULL || b->n_attrs == 0 || b->n_attrs > b->n)
        return blyi_acl_reject(b->call, ACL_ERROR_INVALID_PARAM,
                               "attrs, attrsIndexes or numAttrs %zu (of 1 .. %zu)", b->n_attrs,
                               b->n);
    for (size_t i = 0; i < b->n_attrs; i++) {
        if (b->attr_indexes[i] >= b->n ||
            (i == 0 ? b->attr_indexes[0] != 0 : b->attr_indexes[i] <= b->attr_indexes[i - 1]))
            return blyi_acl_reject(b->call, ACL_ERROR_INVALID_PARAM,
                                   "attrsIndexes[%zu] is %zu: they begin at 0, rise and stay below "
                                   "%zu",
                                   i, b->attr_indexes[i], b->n);
        for (size_t at = 0; at < sizeof(b->attrs[i].rsv); at++)
            if (b->attrs[i].rsv[at] != 0)
                return blyi_acl_reject(b->call, ACL_ERROR_INVALID_PARAM, "attrs[%zu].rsv is not 0",
                                       i);
    }
    return ACL_SUCCESS;
}

static aclError check_arrays(const struct batch *b)
{
    if (b->n == 0)
        return blyi_acl_reject(b->call, ACL_ERROR_INVALID_PARAM, "numBatches is 0");
    if (b->dsts == NULL || b->dst_max == NULL || b->srcs == NULL || b->sizes == NULL)
        return blyi_acl_reject(b->call, ACL_ERROR_INVALID_PARAM,
                               "dsts, destMaxs, srcs or sizes is NULL");
    aclError error = check_attrs(b);
    for (size_t i = 0; error == ACL_SUCCESS && i < b->n; i++)
        if (b->sizes[i] > b->dst_max[i])
            error = blyi_acl_reject(b->call, ACL_ERROR_INVALID_PARAM,
                                    "element %zu: size %zu is above destMax %zu", i, b->sizes[i],
                                    b->dst_max[i]);
    return error;
}

static bool is_card(const void *address)
{
    return blyi_place_of(address, NULL) == BLYI_PLACE_CARD;
}

/* Element `i` goes the way of the first element, which is the way its attribute says. */
static aclError check_element(const struct batch *b, size_t i, const aclrtMemcpyBatchAttr *attr)
{
    bool to_card = is_card(b->dsts[i]), from_card = is_card(b->srcs[i]);
    if (b->dsts[i] == NULL || b->srcs[i] == NULL)
        return blyi_acl_reject(b->call, ACL_ERROR_INVALID_PARAM, "element %zu: a NULL address", i);
    if (to_card == from_card || to_card != is_card(b->dsts[0]))
        return blyi_acl_reject(b->call, ACL_ERROR_RT_PARAM_INVALID,
                               "element %zu: a batch goes from host to device or from device to "
                               "host as a whole",
                               i);
    if ((attr->dstLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE) != to_card ||
        (attr->srcLoc.type == ACL_MEM_LOCATION_TYPE_DEVICE) != from_card)
        return blyi_acl_reject(
            b->call, ACL_ERROR_RT_PARAM_INVALID,
            "element %zu: its attribute names other locations than its addresses", i);
    /* between host and device, whichever way */
    return blyi_acl_check_foreign(b->call, b->dsts[i], b->srcs[i], ACL_MEMCPY_DEFAULT, true);
}

/* All is checked before the first byte is copied. */
static aclError check_batch(const struct batch *b, size_t *fail)
{
    struct blyi_context *context;
    size_t attr = 0;
    aclError error = check_arrays(b);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_context(b->call, &context);
    if (error != ACL_SUCCESS)
        return error;
    for (size_t i = 0; i < b->n; i++) {
        while (attr + 1 < b->n_attrs && b->attr_indexes[attr + 1] <= i)
            attr++;
        if (b->sizes[i] == 0)
            continue;
        error = check_element(b, i, &b->attrs[attr]);
        if (error != ACL_SUCCESS) {
            *fail = i;
            return error;
        }
    }
    return ACL_SUCCESS;
}

static aclError copy_now(const struct batch *b, uint32_t site, size_t *fail)
{
    aclError error = check_batch(b, fail);
    for (size_t i = 0; error == ACL_SUCCESS && i < b->n; i++) {
        error =
            blyi_acl_result(b->call, blyi_copy_now_at(b->dsts[i], b->srcs[i], b->sizes[i], site));
        if (error != ACL_SUCCESS)
            *fail = i;
    }
    return error;
}

static aclError copy_async(const struct batch *b, void *stream, uint32_t site, size_t *fail)
{
    aclError error = check_batch(b, fail);
    for (size_t i = 0; error == ACL_SUCCESS && i < b->n; i++) {
        error = blyi_acl_result(b->call,
                                blyi_copy_async(b->dsts[i], b->srcs[i], b->sizes[i], stream, site));
        if (error != ACL_SUCCESS)
            *fail = i;
    }
    return error;
}

#define BATCH(function)                                                                            \
    {                                                                                              \
        .call = BLYI_ACL_CALL_##function, .dsts = dsts, .srcs = srcs, .dst_max = destMaxs,         \
        .sizes = sizes, .n = numBatches, .attrs = attrs, .attr_indexes = attrsIndexes,             \
        .n_attrs = numAttrs                                                                        \
    }

aclError bly_acl_aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
                                  size_t numBatches, aclrtMemcpyBatchAttr *attrs,
                                  size_t *attrsIndexes, size_t numAttrs, size_t *failIndex)
{
    const struct batch batch = BATCH(aclrtMemcpyBatch);
    if (failIndex == NULL)
        return acl_null(aclrtMemcpyBatch, "failIndex");
    size_t fail = SIZE_MAX;
    aclError error = copy_now(&batch, ACL_SITE_IF_TOLD(), &fail);
    *failIndex = fail;
    return error;
}

aclError bly_acl_aclrtMemcpyBatchV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
                                    size_t numBatches, aclrtMemcpyBatchAttr *attrs,
                                    size_t *attrsIndexes, size_t numAttrs)
{
    const struct batch batch = BATCH(aclrtMemcpyBatchV2);
    size_t fail;
    return copy_now(&batch, ACL_SITE_IF_TOLD(), &fail);
}

aclError bly_acl_aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
                                       size_t numBatches, aclrtMemcpyBatchAttr *attrs,
                                       size_t *attrsIndexes, size_t numAttrs, size_t *failIndex,
                                       aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    const struct batch batch = BATCH(aclrtMemcpyBatchAsync);
    if (failIndex == NULL)
        return acl_null(aclrtMemcpyBatchAsync, "failIndex");
    size_t fail = SIZE_MAX;
    aclError error = copy_async(&batch, stream, site, &fail);
    *failIndex = fail;
    return error;
}

aclError bly_acl_aclrtMemcpyBatchAsyncV2(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
                                         size_t numBatches, aclrtMemcpyBatchAttr *attrs,
                                         size_t *attrsIndexes, size_t numAttrs, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    const struct batch batch = BATCH(aclrtMemcpyBatchAsyncV2);
    size_t fail;
    return copy_async(&batch, stream, site, &fail);
}
