/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - shared argument checks of the face.
 */
#include "face/acl/check.h"

#include <inttypes.h>

#include "face/acl/visible.h"
#include "npu/card.h"
#include "npu/round.h"
#include "npu/share.h"

aclError blyi_acl_check_device(enum blyi_acl_call call, int64_t user, aclError code, int *card)
{
    blyi_acl_enter();
    int found = user > INT32_MAX || user < 0 ? -1 : blyi_visible_card((int)user);
    if (found >= 0) {
        *card = found;
        return ACL_SUCCESS;
    }
    int count = blyi_visible_count();
    if (count == 0)
        return blyi_acl_reject(call, code,
                               "device %" PRId64 " does not exist: none is visible "
                               "(ASCEND_RT_VISIBLE_DEVICES is '%s')",
                               user, blyi_visible_text());
    return blyi_acl_reject(call, code, "device %" PRId64 " does not exist: the ids are 0 .. %d",
                           user, count - 1);
}

aclError blyi_acl_open_device(enum blyi_acl_call call, int64_t user, aclError code,
                              struct blyi_card **card)
{
    int id = -1;
    aclError error = blyi_acl_check_device(call, user, code, &id);
    if (error != ACL_SUCCESS)
        return error;
    return blyi_acl_result(call, blyi_card_open(id, card));
}

aclError blyi_acl_check_timeout(enum blyi_acl_call call, int32_t timeout_ms, aclError code,
                                uint64_t *timeout_ns)
{
    if (timeout_ms < -1 || timeout_ms == 0)
        return blyi_acl_reject(
            call, code, "timeout %" PRId32 " ms is neither above 0 nor -1 (no limit)", timeout_ms);
    *timeout_ns = timeout_ms == -1 ? 0 : (uint64_t)timeout_ms * 1000000u;
    return ACL_SUCCESS;
}

aclError blyi_acl_check_size(enum blyi_acl_call call, uint64_t size, bool padded, uint64_t *rounded)
{
    if (size == 0)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "size is 0");
    if (!blyi_round_size(size, padded, rounded))
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "size %" PRIu64 " does not fit in 64 bits when rounded up", size);
    return ACL_SUCCESS;
}

aclError blyi_acl_check_context(enum blyi_acl_call call, struct blyi_context **context)
{
    blyi_acl_enter();
    return blyi_acl_result(call, blyi_context_here(context));
}

aclError blyi_acl_check_card(enum blyi_acl_call call, struct blyi_card **card)
{
    blyi_acl_enter();
    return blyi_acl_result(call, blyi_context_here_card(card));
}

aclError blyi_acl_check_default(enum blyi_acl_call call, void **stream, struct blyi_card **card)
{
    blyi_acl_enter();
    return blyi_acl_result(call, blyi_context_here_default(stream, card));
}

aclError blyi_acl_check_limit(enum blyi_acl_call call, uint64_t rounded)
{
    if (rounded > BLYI_ACL_SIZE_MAX)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "size %" PRIu64 " is above the largest allocation, %" PRIu64,
                               rounded, BLYI_ACL_SIZE_MAX);
    return ACL_SUCCESS;
}

aclError blyi_acl_check_foreign(enum blyi_acl_call call, const void *dst, const void *src,
                                aclrtMemcpyKind kind, bool in_order)
{
    bool to = blyi_import_is_foreign(dst), from = blyi_import_is_foreign(src);
    if (likely(!to && !from))
        return ACL_SUCCESS;
    if (in_order && kind == ACL_MEMCPY_DEVICE_TO_DEVICE)
        return ACL_SUCCESS;
    return blyi_acl_reject(
        call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "%s is memory of another process on another card (aclrtIpcMemImportByKey)"
        ": it is copied in stream order and with kind 3 only",
        to ? "dst" : "src");
}
