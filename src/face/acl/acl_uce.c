/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_uce.c - memory errors that cannot be corrected: what a card has found, and repair.
 *
 * A software card has only those that bly_card_poison() made. Repairing loses what was there.
 */
#include <string.h>

#include "face/acl/check.h"
#include "npu/poison.h"

_Static_assert(MAX_MEM_UCE_INFO_ARRAY_SIZE == BLYI_POISON_MAX,
               "a card finds no more than are told");

static aclError check_card(enum blyi_acl_call call, int32_t device, int *card)
{
    return blyi_acl_check_device(call, device, ACL_ERROR_RT_INVALID_DEVICEID, card);
}

static void write_info(aclrtMemUceInfo *info, const struct blyi_poison *range)
{
    memset(info, 0, sizeof(*info));
    info->addr = (void *)range->start;
    info->len = range->size;
}

aclError bly_acl_aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray,
                                    size_t arraySize, size_t *retSize)
{
    struct blyi_poison found[BLYI_POISON_MAX];
    int card;
    if (memUceInfoArray == NULL)
        return acl_null(aclrtGetMemUceInfo, "memUceInfoArray");
    if (retSize == NULL)
        return acl_null(aclrtGetMemUceInfo, "retSize");
    aclError error = check_card(BLYI_ACL_CALL_aclrtGetMemUceInfo, deviceId, &card);
    if (error != ACL_SUCCESS)
        return error;
    size_t n = blyi_poison_found(card, found);
    if (n > arraySize)
        return acl_reject(aclrtGetMemUceInfo, ACL_ERROR_INVALID_PARAM,
                          "arraySize %zu is below the %zu errors of the device", arraySize, n);
    for (size_t i = 0; i < n; i++)
        write_info(&memUceInfoArray[i], &found[i]);
    *retSize = n;
    return ACL_SUCCESS;
}

/* All are errors of the card, or none is repaired. */
static aclError repair(enum blyi_acl_call call, int card, const aclrtMemUceInfo *infos, size_t n)
{
    struct blyi_poison ranges[BLYI_POISON_MAX] = {{0, 0}};
    for (size_t i = 0; i < n; i++)
        ranges[i] = (struct blyi_poison){(uintptr_t)infos[i].addr, infos[i].len};
    bly_status status = blyi_poison_check(card, ranges, n);
    for (size_t i = 0; i < n && status == BLY_OK; i++)
        status = blyi_poison_repair(card, &ranges[i]);
    return blyi_acl_result(call, status);
}

aclError bly_acl_aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray,
                                   size_t arraySize)
{
    static const size_t zeros[UCE_INFO_RESERVED_SIZE];
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemUceRepair;
    int card;
    if (memUceInfoArray == NULL)
        return acl_null(aclrtMemUceRepair, "memUceInfoArray");
    if (arraySize > MAX_MEM_UCE_INFO_ARRAY_SIZE)
        return acl_reject(aclrtMemUceRepair, ACL_ERROR_INVALID_PARAM, "arraySize %zu is above %d",
                          arraySize, MAX_MEM_UCE_INFO_ARRAY_SIZE);
    for (size_t i = 0; i < arraySize; i++)
        if (memcmp(memUceInfoArray[i].reserved, zeros, sizeof(zeros)) != 0)
            return acl_reject(aclrtMemUceRepair, ACL_ERROR_INVALID_PARAM,
                              "memUceInfoArray[%zu].reserved is not 0", i);
    aclError error = check_card(call, deviceId, &card);
    return error != ACL_SUCCESS ? error : repair(call, card, memUceInfoArray, arraySize);
}

/* ── The same, among other errors ─────────────────────────────────────────────────────────── */

aclError bly_acl_aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo)
{
    struct blyi_poison found[BLYI_POISON_MAX];
    int card;
    if (errorInfo == NULL)
        return acl_null(aclrtGetErrorVerbose, "errorInfo");
    aclError error = check_card(BLYI_ACL_CALL_aclrtGetErrorVerbose, deviceId, &card);
    if (error != ACL_SUCCESS)
        return error;
    size_t n = blyi_poison_found(card, found);
    if (n > ACL_RT_MEM_UCE_INFO_MAX_NUM) /* the rest, when these are repaired */
        n = ACL_RT_MEM_UCE_INFO_MAX_NUM;
    memset(errorInfo, 0, sizeof(*errorInfo));
    errorInfo->errorType = n == 0 ? ACL_RT_NO_ERROR : ACL_RT_ERROR_MEMORY;
    errorInfo->tryRepair = errorInfo->hasDetail = n > 0;
    errorInfo->detail.uceInfo.arraySize = n;
    for (size_t i = 0; i < n; i++)
        write_info(&errorInfo->detail.uceInfo.memUceInfoArray[i], &found[i]);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtRepairError(int32_t deviceId, const aclrtErrorInfo *errorInfo)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtRepairError;
    int card;
    if (errorInfo == NULL)
        return acl_null(aclrtRepairError, "errorInfo");
    aclError error = check_card(call, deviceId, &card);
    if (error != ACL_SUCCESS || errorInfo->errorType == ACL_RT_NO_ERROR)
        return error;
    const aclrtMemUceInfoArray *infos = &errorInfo->detail.uceInfo;
    if (errorInfo->errorType != ACL_RT_ERROR_MEMORY)
        return acl_reject(aclrtRepairError, ACL_ERROR_RT_PARAM_INVALID,
                          "error type %d: nothing but memory on a software card needs repair",
                          (int)errorInfo->errorType);
    if (infos->arraySize > ACL_RT_MEM_UCE_INFO_MAX_NUM)
        return acl_reject(aclrtRepairError, ACL_ERROR_RT_PARAM_INVALID, "arraySize %zu is above %d",
                          infos->arraySize, ACL_RT_MEM_UCE_INFO_MAX_NUM);
    return repair(call, card, infos->memUceInfoArray, infos->arraySize);
}
