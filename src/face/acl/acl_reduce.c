/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_reduce.c - reductions of card memory in stream order.
 */
#include "npu/reduce.h"

#include <inttypes.h>

#include "face/acl/check.h"

#define SUM_MAX ((uint64_t)64 << 20) /* bytes of one sum */

aclError bly_acl_aclrtReduceAsync(void *dst, const void *src, uint64_t count, aclrtReduceKind kind,
                                  aclDataType type, aclrtStream stream, void *reserve)
{
    uint32_t site = ACL_SITE();
    enum blyi_reduce_type element;
    if (dst == NULL)
        return acl_null(aclrtReduceAsync, "dst");
    if (src == NULL)
        return acl_null(aclrtReduceAsync, "src");
    if (reserve != NULL)
        return acl_reject(aclrtReduceAsync, ACL_ERROR_INVALID_PARAM, "reserve is not NULL");
    if (count == 0 || (kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM && count > SUM_MAX))
        return acl_reject(aclrtReduceAsync, ACL_ERROR_RT_PARAM_INVALID,
                          "count %" PRIu64 ": a reduction has bytes, a sum at most %" PRIu64, count,
                          SUM_MAX);
    if ((int)kind < ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM ||
        (int)kind > ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL)
        return acl_reject(aclrtReduceAsync, ACL_ERROR_RT_PARAM_INVALID,
                          "kind %d is not in 10 .. 13", (int)kind);
    switch ((int)type) {
    case ACL_INT8:
        element = BLYI_REDUCE_INT8;
        break;
    case ACL_INT16:
        element = BLYI_REDUCE_INT16;
        break;
    case ACL_INT32:
        element = BLYI_REDUCE_INT32;
        break;
    case ACL_FLOAT16:
        element = BLYI_REDUCE_FP16;
        break;
    case ACL_BF16:
        element = BLYI_REDUCE_BF16;
        break;
    case ACL_FLOAT:
        element = BLYI_REDUCE_FP32;
        break;
    default:
        return acl_reject(aclrtReduceAsync, ACL_ERROR_RT_PARAM_INVALID,
                          "data type %d cannot be reduced", (int)type);
    }
    return acl_result(
        aclrtReduceAsync,
        blyi_reduce_async(dst, src, count,
                          (enum blyi_reduce_kind)(kind - ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM), element,
                          stream, site));
}
