/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_notify.c - notifies, counting notifies, and words of memory as signals.
 */
#include <inttypes.h>

#include "face/acl/check.h"
#include "npu/notify.h"
#include "npu/value.h"

#define FLAGS_KNOWN 1u /* ACL_NOTIFY_DEVICE_USE_ONLY */

aclError bly_acl_aclrtCreateNotify(aclrtNotify *notify, uint64_t flag)
{
    uint32_t site = ACL_SITE();
    if (notify == NULL)
        return acl_null(aclrtCreateNotify, "notify");
    if ((flag & ~(uint64_t)FLAGS_KNOWN) != 0)
        return acl_reject(aclrtCreateNotify, ACL_ERROR_RT_PARAM_INVALID,
                          "flag %#" PRIx64 " is not 0 or 1", flag);
    return acl_result(aclrtCreateNotify, blyi_notify_create(false, site, notify));
}

aclError bly_acl_aclrtDestroyNotify(aclrtNotify notify)
{
    if (notify == NULL)
        return acl_null(aclrtDestroyNotify, "notify");
    return acl_result(aclrtDestroyNotify, blyi_notify_destroy(notify, false));
}

aclError bly_acl_aclrtRecordNotify(aclrtNotify notify, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (notify == NULL)
        return acl_null(aclrtRecordNotify, "notify");
    return acl_result(aclrtRecordNotify,
                      blyi_notify_record(notify, false, BLYI_NOTIFY_SET, 1, stream, site));
}

aclError bly_acl_aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout)
{
    uint32_t site = ACL_SITE();
    if (notify == NULL)
        return acl_null(aclrtWaitAndResetNotify, "notify");
    return acl_result(aclrtWaitAndResetNotify, blyi_notify_wait(notify, false, BLYI_NOTIFY_EQUAL, 1,
                                                                true, timeout, stream, site));
}

aclError bly_acl_aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId)
{
    if (notify == NULL)
        return acl_null(aclrtGetNotifyId, "notify");
    if (notifyId == NULL)
        return acl_null(aclrtGetNotifyId, "notifyId");
    return acl_result(aclrtGetNotifyId, blyi_notify_id(notify, false, notifyId));
}

aclError bly_acl_aclrtNotifyBatchReset(aclrtNotify *notifies, size_t num)
{
    if (notifies == NULL)
        return acl_null(aclrtNotifyBatchReset, "notifies");
    if (num == 0)
        return acl_reject(aclrtNotifyBatchReset, ACL_ERROR_INVALID_PARAM, "num is 0");
    return acl_result(aclrtNotifyBatchReset, blyi_notify_reset_now(notifies, num));
}

/* ── Counting ─────────────────────────────────────────────────────────────────────────────── */

aclError bly_acl_aclrtCntNotifyCreate(aclrtCntNotify *cntNotify, uint64_t flag)
{
    uint32_t site = ACL_SITE();
    if (cntNotify == NULL)
        return acl_null(aclrtCntNotifyCreate, "cntNotify");
    if (flag != 0)
        return acl_reject(aclrtCntNotifyCreate, ACL_ERROR_RT_PARAM_INVALID,
                          "flag %#" PRIx64 " is not 0", flag);
    return acl_result(aclrtCntNotifyCreate, blyi_notify_create(true, site, cntNotify));
}

aclError bly_acl_aclrtCntNotifyDestroy(aclrtCntNotify cntNotify)
{
    if (cntNotify == NULL)
        return acl_null(aclrtCntNotifyDestroy, "cntNotify");
    return acl_result(aclrtCntNotifyDestroy, blyi_notify_destroy(cntNotify, true));
}

aclError bly_acl_aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream,
                                      aclrtCntNotifyRecordInfo *info)
{
    uint32_t site = ACL_SITE();
    enum blyi_notify_change change;
    if (cntNotify == NULL)
        return acl_null(aclrtCntNotifyRecord, "cntNotify");
    if (info == NULL)
        return acl_null(aclrtCntNotifyRecord, "info");
    switch ((int)info->mode) {
    case ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE:
        change = BLYI_NOTIFY_SET;
        break;
    case ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE:
        change = BLYI_NOTIFY_ADD;
        break;
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE:
        change = BLYI_NOTIFY_OR;
        break;
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE:
        change = BLYI_NOTIFY_AND;
        break;
    default:
        return acl_reject(aclrtCntNotifyRecord, ACL_ERROR_RT_PARAM_INVALID,
                          "record mode %d is not 0, 1, 2 or 4", (int)info->mode);
    }
    return acl_result(aclrtCntNotifyRecord,
                      blyi_notify_record(cntNotify, true, change, info->value, stream, site));
}

aclError bly_acl_aclrtCntNotifyWaitWithTimeout(aclrtCntNotify cntNotify, aclrtStream stream,
                                               aclrtCntNotifyWaitInfo *info)
{
    uint32_t site = ACL_SITE();
    if (cntNotify == NULL)
        return acl_null(aclrtCntNotifyWaitWithTimeout, "cntNotify");
    if (info == NULL)
        return acl_null(aclrtCntNotifyWaitWithTimeout, "info");
    /* The conditions are numbered as ours. */
    if ((int)info->mode < ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE ||
        (int)info->mode > ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE || info->isClear > 1)
        return acl_reject(aclrtCntNotifyWaitWithTimeout, ACL_ERROR_RT_PARAM_INVALID,
                          "wait mode %d is not in 0 .. 4, or isClear %d not 0 or 1",
                          (int)info->mode, info->isClear);
    return acl_result(aclrtCntNotifyWaitWithTimeout,
                      blyi_notify_wait(cntNotify, true, (enum blyi_notify_condition)info->mode,
                                       info->value, info->isClear != 0, info->timeout, stream,
                                       site));
}

aclError bly_acl_aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (cntNotify == NULL)
        return acl_null(aclrtCntNotifyReset, "cntNotify");
    return acl_result(aclrtCntNotifyReset,
                      blyi_notify_record(cntNotify, true, BLYI_NOTIFY_SET, 0, stream, site));
}

aclError bly_acl_aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t *notifyId)
{
    if (cntNotify == NULL)
        return acl_null(aclrtCntNotifyGetId, "cntNotify");
    if (notifyId == NULL)
        return acl_null(aclrtCntNotifyGetId, "notifyId");
    return acl_result(aclrtCntNotifyGetId, blyi_notify_id(cntNotify, true, notifyId));
}

/* ── Words ────────────────────────────────────────────────────────────────────────────────── */

aclError bly_acl_aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (devAddr == NULL)
        return acl_null(aclrtValueWrite, "devAddr");
    if (flag != 0)
        return acl_reject(aclrtValueWrite, ACL_ERROR_RT_PARAM_INVALID, "flag %" PRIu32 " is not 0",
                          flag);
    return acl_result(aclrtValueWrite, blyi_value_write(devAddr, value, stream, site));
}

aclError bly_acl_aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream)
{
    uint32_t site = ACL_SITE();
    if (devAddr == NULL)
        return acl_null(aclrtValueWait, "devAddr");
    if (flag > BLYI_VALUE_NOR) /* numbered as ours */
        return acl_reject(aclrtValueWait, ACL_ERROR_RT_PARAM_INVALID,
                          "flag %" PRIu32 " is not in 0 .. 3", flag);
    return acl_result(
        aclrtValueWait,
        blyi_value_wait(devAddr, value, (enum blyi_value_condition)flag, stream, site));
}
