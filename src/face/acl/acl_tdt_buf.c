/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_tdt_buf.c - shared buffers, under both of their names.
 *
 * A card behind PCIe refuses them; the software card runs what was written for one that the
 * program itself runs on.
 */
#include <inttypes.h>

#include "face/acl/acl_error.h"
#include "npu/mbuf.h"

#include <acl/acl_rt.h>
#include <acl/acl_tdt_queue.h>

#define NEED(function, argument)                                                                   \
    if ((argument) == NULL)                                                                        \
    return acl_null(function, #argument)

aclError bly_acl_acltdtAllocBuf(size_t size, uint32_t type, acltdtBuf *buf)
{
    if (type != ACL_TDT_NORMAL_MEM && type != ACL_TDT_DVPP_MEM)
        return acl_reject(acltdtAllocBuf, ACL_ERROR_INVALID_PARAM, "type %" PRIu32 " is not 0 or 1",
                          type);
    NEED(acltdtAllocBuf, buf);
    return acl_result(acltdtAllocBuf, blyi_mbuf_alloc(size, buf));
}

aclError bly_acl_aclrtAllocBuf(aclrtMbuf *buf, size_t size)
{
    NEED(aclrtAllocBuf, buf);
    return acl_result(aclrtAllocBuf, blyi_mbuf_alloc(size, buf));
}

/* The other calls differ in nothing but the name. */
#define CALLS(prefix, buffer)                                                                      \
    aclError bly_acl_##prefix##FreeBuf(buffer buf)                                                 \
    {                                                                                              \
        NEED(prefix##FreeBuf, buf);                                                                \
        return acl_result(prefix##FreeBuf, blyi_mbuf_free(buf));                                   \
    }                                                                                              \
    aclError bly_acl_##prefix##GetBufData(const buffer buf, void **dataPtr, size_t *size)          \
    {                                                                                              \
        void *data = NULL;                                                                         \
        uint64_t bytes = 0;                                                                        \
        NEED(prefix##GetBufData, buf);                                                             \
        NEED(prefix##GetBufData, dataPtr);                                                         \
        NEED(prefix##GetBufData, size);                                                            \
        aclError error = acl_result(prefix##GetBufData, blyi_mbuf_data(buf, &data, &bytes));       \
        if (error == ACL_SUCCESS) {                                                                \
            *dataPtr = data;                                                                       \
            *size = bytes;                                                                         \
        }                                                                                          \
        return error;                                                                              \
    }                                                                                              \
    aclError bly_acl_##prefix##SetBufDataLen(buffer buf, size_t len)                               \
    {                                                                                              \
        NEED(prefix##SetBufDataLen, buf);                                                          \
        return acl_result(prefix##SetBufDataLen, blyi_mbuf_set_length(buf, len));                  \
    }                                                                                              \
    aclError bly_acl_##prefix##GetBufDataLen(buffer buf, size_t *len)                              \
    {                                                                                              \
        uint64_t bytes = 0;                                                                        \
        NEED(prefix##GetBufDataLen, buf);                                                          \
        NEED(prefix##GetBufDataLen, len);                                                          \
        aclError error = acl_result(prefix##GetBufDataLen, blyi_mbuf_get_length(buf, &bytes));     \
        if (error == ACL_SUCCESS)                                                                  \
            *len = bytes;                                                                          \
        return error;                                                                              \
    }                                                                                              \
    aclError bly_acl_##prefix##SetBufUserData(buffer buf, const void *dataPtr, size_t size,        \
                                              size_t offset)                                       \
    {                                                                                              \
        NEED(prefix##SetBufUserData, buf);                                                         \
        NEED(prefix##SetBufUserData, dataPtr);                                                     \
        return acl_result(prefix##SetBufUserData, blyi_mbuf_set_user(buf, dataPtr, size, offset)); \
    }                                                                                              \
    aclError bly_acl_##prefix##GetBufUserData(const buffer buf, void *dataPtr, size_t size,        \
                                              size_t offset)                                       \
    {                                                                                              \
        NEED(prefix##GetBufUserData, buf);                                                         \
        NEED(prefix##GetBufUserData, dataPtr);                                                     \
        return acl_result(prefix##GetBufUserData, blyi_mbuf_get_user(buf, dataPtr, size, offset)); \
    }                                                                                              \
    aclError bly_acl_##prefix##CopyBufRef(const buffer buf, buffer *newBuf)                        \
    {                                                                                              \
        NEED(prefix##CopyBufRef, buf);                                                             \
        NEED(prefix##CopyBufRef, newBuf);                                                          \
        return acl_result(prefix##CopyBufRef, blyi_mbuf_copy_ref(buf, newBuf));                    \
    }                                                                                              \
    aclError bly_acl_##prefix##AppendBufChain(buffer headBuf, buffer buf)                          \
    {                                                                                              \
        NEED(prefix##AppendBufChain, headBuf);                                                     \
        NEED(prefix##AppendBufChain, buf);                                                         \
        return acl_result(prefix##AppendBufChain, blyi_mbuf_append(headBuf, buf));                 \
    }                                                                                              \
    aclError bly_acl_##prefix##GetBufChainNum(buffer headBuf, uint32_t *num)                       \
    {                                                                                              \
        NEED(prefix##GetBufChainNum, headBuf);                                                     \
        NEED(prefix##GetBufChainNum, num);                                                         \
        return acl_result(prefix##GetBufChainNum, blyi_mbuf_count(headBuf, num));                  \
    }                                                                                              \
    aclError bly_acl_##prefix##GetBufFromChain(buffer headBuf, uint32_t index, buffer *buf)        \
    {                                                                                              \
        NEED(prefix##GetBufFromChain, headBuf);                                                    \
        NEED(prefix##GetBufFromChain, buf);                                                        \
        return acl_result(prefix##GetBufFromChain, blyi_mbuf_at(headBuf, index, buf));             \
    }

CALLS(acltdt, acltdtBuf)
CALLS(aclrt, aclrtMbuf)
